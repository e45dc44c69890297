"""What a decoder may look like, whatever a file says."""

from dataclasses import replace
from typing import Any

import pytest

from chatserve.errors import ModelError
from chatserve.model.config import ModelConfig

CONFIG = ModelConfig(
    architecture="llama",
    vocab_size=320,
    hidden_size=32,
    intermediate_size=64,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    max_position_embeddings=256,
    rms_norm_eps=1e-5,
    rope_theta=10_000.0,
)
SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "max_position_embeddings",
)


@pytest.mark.parametrize("value", [0, -1, 1 << 40, 2.0, "8", None, [8]], ids=repr)
@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_a_whole_number_within_reason(name: str, value: Any) -> None:
    with pytest.raises(ModelError, match=f"{name} must be a whole number from 1 to"):
        replace(CONFIG, **{name: value})


@pytest.mark.parametrize("value", [0, -1.0, float("inf"), float("nan"), "1", None], ids=repr)
@pytest.mark.parametrize("name", ["rms_norm_eps", "rope_theta"])
def test_a_constant_is_a_number_above_zero(name: str, value: Any) -> None:
    with pytest.raises(ModelError, match=f"{name} must be a number above 0"):
        replace(CONFIG, **{name: value})


def test_heads_are_rotated_by_halves() -> None:
    with pytest.raises(ModelError, match="heads of 33 dimensions cannot be rotated by halves"):
        replace(CONFIG, head_dim=33)


def test_query_heads_share_kv_heads_evenly() -> None:
    with pytest.raises(ModelError, match="4 attention heads cannot share 3 KV heads evenly"):
        replace(CONFIG, num_kv_heads=3)
