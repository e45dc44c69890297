"""From settings and a model to a plan: where each input comes from.

Owns what depends on the machine: the meaning of `auto`, the memory that a pool may take, whether
speeds must be measured. The arithmetic is `plan`'s.

torch is imported only where a question needs it, so that a plan from given figures costs no more
than reading the model's header. The engine and `chatserve plan` both come through here; the engine
has loaded its weights by then, and so the memory of a GPU is what they left.
"""

import os
from pathlib import Path

from chatserve.config import EngineConfig
from chatserve.model.catalog import resolve_model
from chatserve.model.config import ModelConfig
from chatserve.model.peek import model_name, peek_config
from chatserve.planning.inputs import Given, PlanInputs, Workload
from chatserve.planning.plan import Plan, make_plan
from chatserve.planning.step_time import MachineSpeed, ModelCost

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
    model, dtype = peek_config(path), _dtype_name(config)
    cost = ModelCost.of(model, dtype)
    speed = _given_speed(config) or _measured_speed(config, model, dtype)
    share = _pool_share_bytes(config, unloaded_bytes=cost.weight_bytes)
    return make_plan(_inputs(config, model_name(path), cost, share, speed))


def plan_for_loaded(config: EngineConfig, name: str, model: ModelConfig, dtype: str) -> Plan:
    """Plan for a model whose weights are in memory; measure only if something depends on it."""
    speed = _given_speed(config)
    if speed is None and None in (config.max_num_seqs, config.max_num_batched_tokens):
        speed = _measured_speed(config, model, dtype)
    share = _pool_share_bytes(config, unloaded_bytes=0)
    return make_plan(_inputs(config, name, ModelCost.of(model, dtype), share, speed))


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


def _dtype_name(config: EngineConfig) -> str:
    if config.dtype != "auto":
        return config.dtype
    from chatserve.model.weights import resolve_dtype
    from chatserve.planning.machine import require_device

    require_device(config.device)
    return str(resolve_dtype(config.dtype, config.device)).removeprefix("torch.")


def _given_speed(config: EngineConfig) -> MachineSpeed | None:
    if config.bandwidth_gb_per_s is None or config.throughput_gflops is None:
        return None
    return MachineSpeed(
        bandwidth_gb_per_s=config.bandwidth_gb_per_s,
        kv_bandwidth_gb_per_s=config.bandwidth_gb_per_s,
        throughput_gflops=config.throughput_gflops,
    )


def _measured_speed(config: EngineConfig, model: ModelConfig, dtype: str) -> MachineSpeed:
    """Return what was measured, with a figure that was given in its place."""
    from chatserve.model.weights import resolve_dtype
    from chatserve.planning.machine import require_device, use_threads
    from chatserve.planning.machine_speed import measure_speed

    require_device(config.device)
    use_threads(config.num_threads)
    torch_dtype = resolve_dtype(dtype, config.device)
    measured = measure_speed(model, torch_dtype, config.device, config.page_size)
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
