"""Loads the model that the settings name, in the precision that they and the backend allow.

Owns what `--quantization` and `--load-format` come to for one worker. Knows no scheduler and no
pool; `launch` puts those around the model.
"""

import torch

from chatserve.config import DEFAULT_MODEL, EngineConfig
from chatserve.kernels.cpu import CpuOps
from chatserve.kernels.ops import Ops
from chatserve.model.catalog import CATALOG, resolve_model
from chatserve.model.precision import resolve_quantization
from chatserve.model.weights import LoadedModel, load_dummy, load_model


def load_configured(config: EngineConfig, dtype: torch.dtype, ops: Ops) -> LoadedModel:
    """Load the configured model for a backend.

    Raises:
        ConfigError: There is no such model, or the backend cannot multiply by its weights as asked.
        ModelError: The model cannot be read or needs something this build lacks.
    """
    path = resolve_model(config.model, config.data_dir)
    obstacle = obstacle_to_quantized(config.device, dtype, ops)
    quantization = resolve_quantization(config.quantization, obstacle=obstacle)
    if config.load_format == "dummy":
        return load_dummy(
            path,
            dtype=dtype,
            device=config.device,
            ops=ops,
            quantization=quantization,
            spare_tokenizer=CATALOG[DEFAULT_MODEL].path_in(config.data_dir),
        )
    return load_model(
        path,
        dtype=dtype,
        device=config.device,
        cache_dir=config.data_dir / "weights",
        ops=ops,
        quantization=quantization,
    )


def obstacle_to_quantized(device: str, dtype: torch.dtype, ops: Ops) -> str | None:
    """Return why weights cannot stay quantised while they are multiplied by; None if they can."""
    if device != "cpu":
        return f"--device {device} computes with dense weights only"
    if dtype != torch.bfloat16:
        name = str(dtype).removeprefix("torch.")
        return f"the CPU kernels for quantised weights compute in bfloat16, not in {name}"
    if not isinstance(ops, CpuOps):
        return "plain torch computes here, not the CPU kernels"
    return None
