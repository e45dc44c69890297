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
def test_silu_and_mul_gates_the_second_half_by_the_first(ops: Ops, dtype: torch.dtype) -> None:
    gate_up = random(6, 14, dtype=dtype)

    activated = ops.silu_and_mul(gate_up)

    gate, up = gate_up.double().chunk(2, dim=-1)
    assert_close(activated, gate / (1 + (-gate).exp()) * up)


@pytest.mark.parametrize("num_rows", [2, 40, 300])
def test_a_row_does_not_depend_on_the_rows_beside_it(ops: Ops, num_rows: int) -> None:
    x = random(num_rows, 96, dtype=torch.bfloat16)
    weight = random(96, dtype=torch.bfloat16, seed=1)

    normed, total = ops.add_rms_norm(x, x.flip(1), weight, 1e-5)
    activated = ops.silu_and_mul(x)

    for row in (0, num_rows - 1):
        alone = x[row : row + 1]
        normed_alone, total_alone = ops.add_rms_norm(alone, alone.flip(1), weight, 1e-5)
        assert torch.equal(normed[row], normed_alone[0])
        assert torch.equal(total[row], total_alone[0])
        assert torch.equal(activated[row], ops.silu_and_mul(alone)[0])


def test_silu_of_large_numbers_is_the_number_or_nothing(ops: Ops) -> None:
    gate = torch.tensor([[200.0, -200.0, 3e38, 0.0]], device=DEVICE)
    gate_up = torch.cat((gate, torch.ones_like(gate)), dim=1).bfloat16()

    activated = ops.silu_and_mul(gate_up)

    assert_close(activated, gate.clamp(min=0).bfloat16().double())


def test_what_is_not_a_number_stays_visible(ops: Ops) -> None:
    x = random(2, 34, dtype=torch.bfloat16)
    x[1, 5] = torch.nan
    weight = torch.ones(34, dtype=torch.bfloat16, device=DEVICE)

    normed = ops.rms_norm(x, weight, 1e-5)
    activated = ops.silu_and_mul(x)

    assert normed[0].isfinite().all()
    assert normed[1].isnan().all()
    assert activated.isnan().nonzero().tolist() == [[1, 5]]
