"""The ops that work row by row, each against its formula written out in float64."""

import pytest
import torch
from kernel_helpers import BACKENDS, DEVICE
from torch import Tensor

from chatserve.kernels.ops import Ops

DTYPES = [torch.float32, torch.bfloat16]
TOLERANCE = {torch.float32: 1e-6, torch.bfloat16: 2**-7}


@pytest.fixture(params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Ops:
    return BACKENDS[request.param]()


def random(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def assert_close(result: Tensor, exact: Tensor) -> None:
    tolerance = TOLERANCE[result.dtype]
    torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rms_norm_divides_by_the_root_mean_square(ops: Ops, dtype: torch.dtype) -> None:
    x, weight = random(5, 33, dtype=dtype), random(33, dtype=dtype, seed=1)

    normed = ops.rms_norm(x, weight, 1e-5)

    wide = x.double()
    exact = wide / (wide.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    assert normed.dtype == dtype
    assert_close(normed, exact)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_add_rms_norm_norms_the_sum_and_returns_it(ops: Ops, dtype: torch.dtype) -> None:
    x, residual = random(5, 32, dtype=dtype), random(5, 32, dtype=dtype, seed=1)
    weight = random(32, dtype=dtype, seed=2)

    normed, total = ops.add_rms_norm(x, residual, weight, 1e-5)

    assert torch.equal(total, x + residual)
    assert torch.equal(normed, ops.rms_norm(x + residual, weight, 1e-5))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rotary_embedding_turns_each_pair_of_halves(ops: Ops, dtype: torch.dtype) -> None:
    x = random(4, 3, 8, dtype=dtype)
    angles = random(4, 4, dtype=torch.float32, seed=1)

    rotated = ops.rotary_embedding(x, angles.cos(), angles.sin())

    pairs = torch.complex(x[..., :4].double(), x[..., 4:].double())
    turned = pairs * torch.polar(torch.ones(4, 1, 4, device=DEVICE), angles[:, None])
    assert rotated.dtype == dtype
    assert_close(rotated, torch.cat((turned.real, turned.imag), dim=-1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_silu_and_mul_gates_the_second_half_by_the_first(ops: Ops, dtype: torch.dtype) -> None:
    gate_up = random(6, 14, dtype=dtype)

    activated = ops.silu_and_mul(gate_up)

    gate, up = gate_up.double().chunk(2, dim=-1)
    assert_close(activated, gate / (1 + (-gate).exp()) * up)
