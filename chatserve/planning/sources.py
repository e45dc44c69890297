"""From settings and a model to a plan: where each input comes from.

Owns what depends on the machine: the meaning of `auto`, the memory that a pool may take, whether
speeds must be measured. The arithmetic is `plan`'s.

torch is imported only where a question needs it, so that a plan from given figures costs no more
than reading the model's header. The engine and `chatserve plan` both come through here; the engine
has loaded its weights by then, and so the memory of a GPU is what they left.
"""

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from chatserve.config import EngineConfig
from chatserve.model.catalog import resolve_model
from chatserve.model.config import ModelConfig
from chatserve.model.peek import PeekedModel, model_name, peek_model
from chatserve.model.precision import Quantization, WeightSummary, resolve_quantization
from chatserve.planning.inputs import Given, PlanInputs, Workload
from chatserve.planning.plan import Plan, check_sizes, make_plan
from chatserve.planning.step_time import MachineSpeed, ModelCost

if TYPE_CHECKING:
    from chatserve.kernels import Ops

CPU_MEMORY_SHARE = 0.25
"""Share of the machine's memory that the pool may take when nothing else is said.

The rest is for weights, the store and whatever else runs. Pages that were never used take none.
"""

GPU_MEMORY_SHARE = 0.8
"""Share of the GPU's memory beside the weights; the rest is for what a step computes."""

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def plan_without_loading(config: EngineConfig) -> Plan:
    """Plan for a model of which only the header is read; always with predicted steps.

    Raises:
        ConfigError, ModelError: The model or the settings do not work.
    """
    path = resolve_model(config.model, config.data_dir)
    backend, peeked = _Backend(config), peek_model(path)
    dtype = backend.dtype_name()
    weights = _weights(config, peeked, dtype, backend)
    cost = ModelCost.of(
        peeked.config, dtype, weights.weight_bytes, has_own_head=weights.has_own_head
    )
    speed = _given_speed(config) or backend.measured_speed(peeked.config, cost)
    share = _pool_share_bytes(config, unloaded_bytes=cost.weight_bytes)
    return make_plan(_inputs(config, model_name(path), cost, share, speed))


def check_before_loading(config: EngineConfig, dtype: str) -> None:
    """Raise ConfigError for sizes that cannot work, by what the model's header says alone."""
    path = resolve_model(config.model, config.data_dir)
    cost = ModelCost.of(peek_model(path).config, dtype)
    check_sizes(_inputs(config, model_name(path), cost, share=0, speed=None))


def plan_for_loaded(config: EngineConfig, name: str, model: ModelConfig, cost: ModelCost) -> Plan:
    """Plan for a model whose weights are in memory; measure only if something depends on it."""
    speed = _given_speed(config)
    if speed is None and None in (config.max_num_seqs, config.max_num_batched_tokens):
        speed = _Backend(config).measured_speed(model, cost)
    share = _pool_share_bytes(config, unloaded_bytes=0)
    return make_plan(_inputs(config, name, cost, share, speed))


def _weights(
    config: EngineConfig, peeked: PeekedModel, dtype: str, backend: "_Backend"
) -> WeightSummary:
    """Describe the weights as the engine would hold them."""
    dense = peeked.summarize(Quantization.NONE, dtype)
    as_filed = peeked.summarize(Quantization.FILE, dtype)
    if config.quantization == "none" or (config.quantization == "auto" and as_filed == dense):
        return dense
    return peeked.summarize(backend.quantization(dtype), dtype)


def _inputs(
    config: EngineConfig, name: str, cost: ModelCost, share: int, speed: MachineSpeed | None
) -> PlanInputs:
    shared = config.shared_tokens
    if shared is None:
        shared = config.session_tokens // 2
    return PlanInputs(
        model=name,
        cost=cost,
        page_size=config.page_size,
        prefix_cache=config.prefix_cache,
        workload=Workload(config.target_itl_ms, config.session_tokens, shared),
        given=Given(
            num_pages=config.num_pages,
            kv_memory_bytes=config.kv_memory_bytes,
            max_num_seqs=config.max_num_seqs,
            max_num_batched_tokens=config.max_num_batched_tokens,
            max_model_len=config.max_model_len,
            shared_tokens=config.shared_tokens,
        ),
        pool_share_bytes=share,
        speed=speed,
    )


def _given_speed(config: EngineConfig) -> MachineSpeed | None:
    if config.bandwidth_gb_per_s is None or config.throughput_gflops is None:
        return None
    return MachineSpeed(
        bandwidth_gb_per_s=config.bandwidth_gb_per_s,
        kv_bandwidth_gb_per_s=config.bandwidth_gb_per_s,
        throughput_gflops=config.throughput_gflops,
    )


class _Backend:
    """Answers what depends on the ops that would serve; they are made for the first such question.

    They are not those of an engine, which would keep the weights that speeds are measured with.

    Owns: the ops. Used from: whoever plans.
    """

    def __init__(self, config: EngineConfig):
        self._config = config

    @cached_property
    def _ops(self) -> "Ops":
        from chatserve.kernels import get_ops
        from chatserve.planning.machine import require_device, use_threads

        require_device(self._config.device)
        use_threads(self._config.num_threads)
        return get_ops(self._config.device, self._config.cpu_level)

    def dtype_name(self) -> str:
        if self._config.dtype != "auto":
            return self._config.dtype
        from chatserve.planning.dtype import resolve_dtype

        dtype = resolve_dtype(self._config.dtype, self._config.device, self._ops)
        return str(dtype).removeprefix("torch.")

    def quantization(self, dtype: str) -> Quantization:
        """Return what `--quantization` stands for; raise ConfigError where it cannot be done."""
        import torch

        from chatserve.engine.model_source import obstacle_to_quantized

        obstacle = obstacle_to_quantized(self._config.device, getattr(torch, dtype), self._ops)
        return resolve_quantization(self._config.quantization, obstacle=obstacle)

    def measured_speed(self, model: ModelConfig, cost: ModelCost) -> MachineSpeed:
        """Return what was measured, with a figure that was given in its place."""
        from chatserve.planning.machine_speed import measure_speed

        config = self._config
        measured = measure_speed(model, cost, self._ops, config.device, config.page_size)
        bandwidth = config.bandwidth_gb_per_s
        return MachineSpeed(
            bandwidth_gb_per_s=bandwidth or measured.bandwidth_gb_per_s,
            kv_bandwidth_gb_per_s=bandwidth or measured.kv_bandwidth_gb_per_s,
            throughput_gflops=config.throughput_gflops or measured.throughput_gflops,
        )


def _pool_share_bytes(config: EngineConfig, *, unloaded_bytes: int) -> int:
    """Return what the pool may take; 0, and nothing is asked, where its size is given."""
    if config.num_pages is not None or config.kv_memory_bytes is not None:
        return 0
    if config.device == "cpu":
        return int(_host_memory_bytes() * CPU_MEMORY_SHARE)
    from chatserve.planning.machine import free_gpu_bytes, require_device

    require_device(config.device)
    return int(max(0, free_gpu_bytes() - unloaded_bytes) * GPU_MEMORY_SHARE)


def _host_memory_bytes() -> int:
    """Return the machine's memory, or the limit of the container where that is lower."""
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CGROUP_LIMIT.read_text().strip()
    except OSError:
        return installed
    return min(installed, int(limit)) if limit.isdigit() else installed
