"""Measured speeds: there for every dtype and shape, and taken from the tensors that they claim."""

from dataclasses import replace

import pytest
import torch

from chatserve.model.config import ModelConfig
from chatserve.planning import machine_speed
from chatserve.planning.machine_speed import measure_speed

SHAPE = ModelConfig(
    architecture="llama",
    vocab_size=320,
    hidden_size=48,
    intermediate_size=80,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=12,
    max_position_embeddings=64,
    rms_norm_eps=1e-5,
    rope_theta=10_000.0,
)


@pytest.fixture(autouse=True)
def _small_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_speed, "_WEIGHT_BYTES", 1 << 20)
    monkeypatch.setattr(machine_speed, "_PASS_BYTES", 1 << 18)
    monkeypatch.setattr(machine_speed, "_MEASURE_S", 0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("page_size", [1, 16, 256])
def test_every_dtype_and_page_size_has_three_speeds(dtype: torch.dtype, page_size: int) -> None:
    speed = measure_speed(SHAPE, dtype, "cpu", page_size)

    assert speed.bandwidth_gb_per_s > 0
    assert speed.kv_bandwidth_gb_per_s > 0
    assert speed.throughput_gflops > 0


def test_a_shape_larger_than_one_pass_is_measured_too() -> None:
    wide = replace(SHAPE, hidden_size=4096, intermediate_size=2048, num_kv_heads=4, head_dim=256)

    speed = measure_speed(wide, torch.float32, "cpu", 16)

    assert min(speed.bandwidth_gb_per_s, speed.kv_bandwidth_gb_per_s) > 0


def test_speeds_are_work_over_the_time_of_the_fastest_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([9.0, 0.5, 0.25, *[1.0] * 6] * 3)  # the first of each speed only warms up
    monkeypatch.setattr(machine_speed, "_time_once", lambda _run, _device: next(times))

    speed = measure_speed(SHAPE, torch.float32, "cpu", 16)

    matrix_bytes = 2 * 80 * 48 * 4
    matrices = -(-(1 << 18) // matrix_bytes)
    kv_bytes = 2 * (1 << 18) // (2 * 1024 * 2 * 12 * 4) * 1024 * 2 * 12 * 4
    assert speed.throughput_gflops == pytest.approx(2 * 256 * 2 * 80 * 48 / 0.25 / 1e9)
    assert speed.bandwidth_gb_per_s == pytest.approx(matrices * matrix_bytes / 0.25 / 1e9)
    assert speed.kv_bandwidth_gb_per_s == pytest.approx(kv_bytes / 0.25 / 1e9)
