"""Inputs of plans: the default model's shape on a machine whose speed is known. No torch."""

from dataclasses import replace
from typing import Any

from chatserve.model.config import ModelConfig
from chatserve.planning.inputs import Given, PlanInputs, Workload
from chatserve.planning.step_time import MachineSpeed, ModelCost

GIB = 2**30

SMOLLM2_135M = ModelConfig(
    architecture="llama",
    vocab_size=49_152,
    hidden_size=576,
    intermediate_size=1536,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    max_position_embeddings=8192,
    rms_norm_eps=1e-5,
    rope_theta=100_000.0,
    tie_word_embeddings=True,
)

TWO_CORES = MachineSpeed(
    bandwidth_gb_per_s=10.0, kv_bandwidth_gb_per_s=10.0, throughput_gflops=400.0
)
BIG_GPU = MachineSpeed(
    bandwidth_gb_per_s=4000.0, kv_bandwidth_gb_per_s=4000.0, throughput_gflops=500_000.0
)


def make_inputs(
    *,
    target_itl_ms: float = 100.0,
    session_tokens: int = 1024,
    shared_tokens: int | None = None,
    given: Given | None = None,
    **changes: Any,
) -> PlanInputs:
    """Return inputs with a pool of 1 GiB, changed as the test wants them."""
    given = replace(given or Given(kv_memory_bytes=GIB), shared_tokens=shared_tokens)
    shared = session_tokens // 2 if shared_tokens is None else shared_tokens
    inputs = PlanInputs(
        model="smollm2-135m-instruct",
        cost=ModelCost.of(SMOLLM2_135M, "bfloat16"),
        page_size=16,
        prefix_cache=True,
        workload=Workload(target_itl_ms, session_tokens, shared),
        given=given,
        pool_share_bytes=0,
        speed=TWO_CORES,
    )
    return replace(inputs, **changes)
