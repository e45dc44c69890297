"""What an engine says of itself when it starts: what computes, what is served, within which limits.

Owns the words. Each fact is told once; details of the plan are for `--log-level debug`.
"""

import logging

import torch

from chatserve.config import EngineConfig
from chatserve.kernels import HOW_TO_BUILD, Ops
from chatserve.kernels.cpu import CpuOps
from chatserve.model.weights import LoadedModel
from chatserve.planning.machine import kernels_compute
from chatserve.planning.plan import Plan
from chatserve.planning.report import log_details, log_summary
from chatserve.wording import counted

logger = logging.getLogger(__name__)


def log_backend(ops: Ops, dtype: torch.dtype, config: EngineConfig) -> None:
    """Say what computes a model of this dtype, and warn where it could be much faster."""
    num_threads, device = torch.get_num_threads(), config.device
    threads = counted(num_threads, "thread")
    if isinstance(ops, CpuOps) and kernels_compute(ops, dtype):
        logger.info("computing with the CPU kernels for %s, on %s", ops.level, threads)
    elif device == "cpu" and config.cpu_level == "auto" and not isinstance(ops, CpuOps):
        logger.warning(
            "the CPU kernels are not built, so that plain torch computes, several times slower: %s",
            HOW_TO_BUILD,
        )
    else:
        where = threads if device == "cpu" else device
        name = str(dtype).removeprefix("torch.")
        logger.info("computing with torch on %s, in %s", where, name)


def log_model(model: LoadedModel, dtype_name: str, device: str) -> None:
    """Say what is served, in which precision, and what a token costs to read."""
    logger.info(
        "serving %s on %s: weights in %s, %d MB read for a token; everything else in %s",
        model.name,
        device,
        model.precision,
        model.weight_bytes // 1_000_000,
        dtype_name,
    )


def log_plan(plan: Plan) -> None:
    """Say the limits of the engine, and warn of what will disappoint."""
    logger.info("%s", log_summary(plan))
    for line in log_details(plan):
        logger.debug("%s", line)
    for warning in plan.warnings:
        logger.warning("%s", warning)
