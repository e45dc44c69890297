"""What a decode step must read and compute."""

from types import SimpleNamespace
from typing import cast

import torch

from benchmarks.engine_speed import step_costs
from benchmarks.local_engine import LocalModel
from chatserve.model.config import ModelConfig

CONFIG = ModelConfig(
    architecture="llama",
    vocab_size=100,
    hidden_size=64,
    intermediate_size=128,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    max_position_embeddings=512,
    rms_norm_eps=1e-5,
    rope_theta=10_000.0,
)
LOCAL = cast(
    LocalModel,
    SimpleNamespace(
        model=SimpleNamespace(config=CONFIG, weight_bytes=1_000_000), dtype=torch.bfloat16
    ),
)


def test_weights_are_read_once_and_kv_for_every_stream() -> None:
    kv_bytes_per_token = 3 * 2 * 2 * 16 * 2  # layers, keys and values, heads, sizes, bytes

    num_bytes, _ = step_costs(LOCAL, num_streams=4, context=10)

    assert num_bytes == 1_000_000 + 4 * 10 * kv_bytes_per_token


def test_every_stream_is_multiplied_with_every_weight_and_attends_to_its_context() -> None:
    products = 2 * 500_000 * 4
    attention = 4 * 10 * 3 * 4 * (2 * 16 + 2 * 16)  # streams, tokens, layers, heads, operations

    _, operations = step_costs(LOCAL, num_streams=4, context=10)

    assert operations == products + attention
