"""Linear layers: every backend against float64, the CPU kernels also against themselves."""

from collections.abc import Iterator

import pytest
import torch
from kernel_helpers import BACKENDS, DEVICE, cpu_ops
from torch import Tensor
from torch.nn import functional

from chatserve.kernels.cpu import CpuOps
from chatserve.kernels.cpu.build import LEVELS
from chatserve.kernels.ops import Ops

# Around the heights of tiles (6 and 12) and of a chunk of rows (96), and a whole prefill chunk.
ROW_COUNTS = [1, 2, 3, 5, 6, 7, 11, 12, 13, 31, 33, 95, 96, 97, 512]
SHAPES = [(64, 64), (33, 7), (1, 1), (70, 1030), (31, 2)]


@pytest.fixture(params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Ops:
    return BACKENDS[request.param]()


@pytest.fixture(params=LEVELS)
def kernels(request: pytest.FixtureRequest) -> CpuOps:
    return cpu_ops(request.param)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE, torch.bfloat16)


def assert_as_exact_as_torch(result: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> None:
    """Assert that the error is at most twice that of torch in the same dtype."""
    exact = x.double() @ weight.double().T + bias.double()
    torch_error = (functional.linear(x, weight, bias).double() - exact).abs().max().item()
    error = (result.double() - exact).abs().max().item()
    assert error <= 2 * torch_error + 1e-5, f"error {error}, torch {torch_error}"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("num_rows", ROW_COUNTS)
def test_a_layer_is_as_exact_as_in_torch(ops: Ops, num_rows: int, shape: tuple[int, int]) -> None:
    weight, bias, x = random(*shape), random(shape[0], seed=1), random(num_rows, shape[1], seed=2)

    out = ops.pack_linear(weight, bias, torch.bfloat16)(x)

    assert out.dtype == torch.bfloat16
    assert_as_exact_as_torch(out, x, weight, bias)


def test_logits_are_not_rounded(kernels: CpuOps) -> None:
    weight, x = random(50, 64), random(3, 64, seed=1)

    logits = kernels.pack_linear(weight, None, torch.float32)(x)

    assert logits.dtype == torch.float32
    torch.testing.assert_close(
        logits.double(), x.double() @ weight.double().T, rtol=1e-5, atol=1e-5
    )


def test_another_dtype_is_left_to_the_reference(ops: Ops) -> None:
    weight, x = random(5, 8).float(), random(3, 8, seed=1).float()

    out = ops.pack_linear(weight, None, torch.float32)(x)

    assert torch.equal(out, functional.linear(x, weight))


def test_no_rows_give_no_rows(ops: Ops) -> None:
    out = ops.pack_linear(random(5, 8), None, torch.bfloat16)(random(0, 8))

    assert out.shape == (0, 5)


@pytest.mark.parametrize("num_rows", ROW_COUNTS)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(kernels: CpuOps, num_rows: int) -> None:
    layer = kernels.pack_linear(random(130, 1537), random(130, seed=1), torch.float32)
    x = random(num_rows, 1537, seed=2)

    together = layer(x)

    alone = [layer(x[row : row + 1]) for row in range(num_rows)]
    assert torch.equal(together, torch.cat(alone))


@pytest.mark.usefixtures("threads")
def test_the_number_of_threads_changes_no_bit(kernels: CpuOps) -> None:
    weight, x = random(130, 257), random(40, 257, seed=1)
    expected = kernels.pack_linear(weight, None, torch.float32)(x)

    for num_threads in (2, 3, 8):
        torch.set_num_threads(num_threads)
        layer = CpuOps(kernels.level).pack_linear(weight, None, torch.float32)
        assert torch.equal(layer(x), expected)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_stays_in_its_row(kernels: CpuOps, value: float) -> None:
    layer = kernels.pack_linear(random(40, 65).abs() + 1, None, torch.bfloat16)
    x = random(14, 65, seed=1)
    x[9, 64] = value

    out = layer(x)

    expected = torch.full((40,), value, dtype=torch.bfloat16)
    assert torch.equal(out[9].isnan(), expected.isnan())
    assert torch.equal(out[9].nan_to_num(), expected.nan_to_num())
    assert out[:9].isfinite().all()
    assert out[10:].isfinite().all()


def test_the_weight_may_change_once_it_is_packed(kernels: CpuOps) -> None:
    weight, x = random(40, 64), random(2, 64, seed=1)
    layer = kernels.pack_linear(weight, None, torch.bfloat16)
    expected = layer(x)

    weight.zero_()

    assert torch.equal(layer(x), expected)


def test_rows_with_gaps_between_them_are_refused(kernels: CpuOps) -> None:
    layer = kernels.pack_linear(random(40, 64), None, torch.bfloat16)

    with pytest.raises(AssertionError):
        layer(random(4, 128)[:, :64])
