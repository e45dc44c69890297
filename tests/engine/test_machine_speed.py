"""Measured speeds: there for every dtype and shape, and taken from the tensors that they claim."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from chatserve.kernels import get_ops
from chatserve.kernels.ops import PackedLinear
from chatserve.kernels.quantized import QuantizedWeight, Weight
from chatserve.kernels.torch_ops import TorchOps
from chatserve.model.config import ModelConfig
from chatserve.planning import machine_speed
from chatserve.planning.machine_speed import measure_speed
from chatserve.planning.step_time import MachineSpeed, ModelCost

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


def measure(model: ModelConfig, dtype: str, page_size: int = 16) -> MachineSpeed:
    return measure_speed(model, ModelCost.of(model, dtype), get_ops("cpu"), "cpu", page_size)


class PackingOps(TorchOps):
    """The reference, which remembers what it was given to pack."""

    def __init__(self) -> None:
        self.packed: list[Weight] = []

    def pack_linear(
        self, weight: Weight, bias: Tensor | None, out_dtype: torch.dtype
    ) -> PackedLinear:
        self.packed.append(weight)
        dense = weight if isinstance(weight, Tensor) else weight.dequantize(out_dtype)
        return super().pack_linear(dense, bias, out_dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("page_size", [1, 16, 256])
def test_every_dtype_and_page_size_has_three_speeds(dtype: str, page_size: int) -> None:
    speed = measure(SHAPE, dtype, page_size)

    assert speed.bandwidth_gb_per_s > 0
    assert speed.kv_bandwidth_gb_per_s > 0
    assert speed.throughput_gflops > 0


def test_a_shape_larger_than_one_pass_is_measured_too() -> None:
    wide = replace(SHAPE, hidden_size=4096, intermediate_size=2048, num_kv_heads=4, head_dim=256)

    speed = measure(wide, "float32")

    assert min(speed.bandwidth_gb_per_s, speed.kv_bandwidth_gb_per_s) > 0


@pytest.mark.parametrize(("bytes_per_weight", "bits"), [(1.06, 8), (0.62, 4), (0.56, 4)])
def test_a_quantised_model_is_measured_with_weights_of_its_width(
    bytes_per_weight: float, bits: int
) -> None:
    wide = replace(SHAPE, hidden_size=64)
    dense = ModelCost.of(wide, "bfloat16")
    cost = ModelCost.of(wide, "bfloat16", int(dense.step_read_bytes / 2 * bytes_per_weight))
    ops = PackingOps()

    measure_speed(wide, cost, ops, "cpu", 16)

    assert {weight.bits for weight in ops.packed if isinstance(weight, QuantizedWeight)} == {bits}


def test_dense_weights_each_have_their_own_memory() -> None:
    ops = PackingOps()

    measure_speed(SHAPE, ModelCost.of(SHAPE, "float32"), ops, "cpu", 16)

    addresses = {weight.data_ptr() for weight in ops.packed if isinstance(weight, Tensor)}
    assert len(addresses) == len(ops.packed)


def test_speeds_are_work_over_the_time_of_the_fastest_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([9.0, 0.5, 0.25, *[1.0] * 6] * 3)  # the first of each speed only warms up
    monkeypatch.setattr(machine_speed, "_time_once", lambda _run, _device: next(times))

    speed = measure(SHAPE, "float32")

    matrix_bytes = 2 * 80 * 48 * 4
    matrices = -(-(1 << 18) // matrix_bytes)
    kv_bytes = 2 * (1 << 18) // (2 * 1024 * 2 * 12 * 4) * 1024 * 2 * 12 * 4
    assert speed.throughput_gflops == pytest.approx(2 * 256 * 2 * 80 * 48 / 0.25 / 1e9)
    assert speed.bandwidth_gb_per_s == pytest.approx(matrices * matrix_bytes / 0.25 / 1e9)
    assert speed.kv_bandwidth_gb_per_s == pytest.approx(kv_bytes / 0.25 / 1e9)
