"""Linear layers over 8 and 4 bits: the kernels against exact arithmetic on the rounded numbers."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from kernel_helpers import BACKENDS, cpu_ops
from torch import Tensor

from chatserve.kernels.cpu import CpuOps
from chatserve.kernels.cpu.build import LEVELS
from chatserve.kernels.ops import Ops
from chatserve.kernels.quantized import GROUP_SIZE, QuantizedWeight

# Not multiples of a panel (8, 16 and 32 columns), and the sizes of a real model.
SHAPES = [(1, 32), (33, 64), (70, 576), (31, 1536)]


def random_weight(bits: int, out_features: int, in_features: int, *, mins: bool) -> QuantizedWeight:
    """Return every code with scales of both signs, as a file may hold them."""
    generator = torch.Generator().manual_seed(out_features)
    num_bytes = in_features * bits // 8
    codes = torch.randint(0, 256, (out_features, num_bytes), generator=generator).to(torch.uint8)
    shape = (out_features, in_features // GROUP_SIZE)
    scales = torch.randn(shape, generator=generator).half()
    lows = torch.randn(shape, generator=generator).half()
    return QuantizedWeight(bits, codes, scales, lows if mins else None)


FORMATS: dict[str, Callable[[int, int], QuantizedWeight]] = {
    "int8": partial(random_weight, 8, mins=False),
    "int4": partial(random_weight, 4, mins=False),
    "int4-mins": partial(random_weight, 4, mins=True),
}


@pytest.fixture(params=LEVELS)
def kernels(request: pytest.FixtureRequest) -> CpuOps:
    return cpu_ops(request.param)


@pytest.fixture(params=FORMATS)
def make_weight(request: pytest.FixtureRequest) -> Callable[[int, int], QuantizedWeight]:
    return FORMATS[request.param]


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(shape[0])).bfloat16()


def rounded_rows(x: Tensor) -> Tensor:
    """Return x as the kernels see it, in float64: 8 bits in groups, ties to even."""
    groups = x.float().view(len(x), x.shape[1] // GROUP_SIZE, GROUP_SIZE)
    largest = groups.abs().amax(-1, keepdim=True)
    steps = torch.tensor(127.0) / largest
    codes = torch.where(largest > 0, groups * steps, 0).round()
    return (codes.double() * (largest / 127).double()).flatten(1)


def assert_exact(out: Tensor, x: Tensor, weight: QuantizedWeight) -> None:
    """Assert that nothing but the addition of groups in float was rounded."""
    rows, columns = rounded_rows(x), weight.dequantize(torch.float64)
    largest_sum = rows.abs() @ columns.abs().T
    error = (out.double() - rows @ columns.T).abs()
    assert (error <= 1e-6 * largest_sum + 1e-30).all(), (error / largest_sum).max()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_integers_are_exact_for_every_number_of_rows(
    kernels: CpuOps,
    make_weight: Callable[[int, int], QuantizedWeight],
    shape: tuple[int, int],
) -> None:
    weight, x = make_weight(*shape), random(97, shape[1])
    layer = kernels.pack_linear(weight, None, torch.float32)

    outputs = [layer(x[:num_rows]) for num_rows in [*range(41), 95, 96, 97]]

    for out in outputs:
        assert_exact(out, x[: len(out)], weight)


def test_the_largest_codes_do_not_overflow(kernels: CpuOps) -> None:
    codes = torch.cat((torch.full((3, 64), 255), torch.zeros(2, 64))).to(torch.uint8)
    weight = QuantizedWeight(8, codes, torch.ones(5, 2).half())
    x = torch.cat((torch.full((1, 64), 127.0), torch.full((1, 64), -127.0))).bfloat16()

    out = kernels.pack_linear(weight, None, torch.float32)(x)

    products = 64 * 127.0 * torch.tensor([127.0, 127, 127, -128, -128])
    assert torch.equal(out, torch.stack((products, -products)))


@pytest.mark.parametrize("scale", [0.0, -0.0, 6e-8, -3e-5, 65504.0])
def test_every_scale_of_half_precision_is_read_exactly(kernels: CpuOps, scale: float) -> None:
    codes = torch.full((40, 32), 129, dtype=torch.uint8)
    weight = QuantizedWeight(8, codes, torch.full((40, 1), scale).half())
    x = torch.zeros(1, 32).bfloat16()
    x[0, 5] = 127

    out = kernels.pack_linear(weight, None, torch.float32)(x)

    assert torch.equal(out, 127 * weight.scales.float().T)


def test_the_bias_is_added_and_the_result_rounded_once(
    kernels: CpuOps, make_weight: Callable[[int, int], QuantizedWeight]
) -> None:
    weight, bias, x = make_weight(70, 576), random(70), random(5, 576)
    expected = kernels.pack_linear(weight, None, torch.float32)(x) + bias

    out = kernels.pack_linear(weight, bias, torch.bfloat16)(x)

    assert torch.equal(out, expected.bfloat16())


def test_a_row_has_the_same_bits_alone_and_in_a_batch(
    kernels: CpuOps, make_weight: Callable[[int, int], QuantizedWeight]
) -> None:
    layer = kernels.pack_linear(make_weight(130, 1536), None, torch.float32)
    x = random(103, 1536)
    alone = torch.cat([layer(x[row : row + 1]) for row in range(len(x))])

    together = {num_rows: layer(x[:num_rows]) for num_rows in [*range(2, 20), 96, 103]}

    for num_rows, out in together.items():
        assert torch.equal(out, alone[:num_rows])


@pytest.mark.usefixtures("threads")
def test_the_number_of_threads_changes_no_bit(
    kernels: CpuOps, make_weight: Callable[[int, int], QuantizedWeight]
) -> None:
    weight, x = make_weight(130, 576), random(40, 576)
    expected = kernels.pack_linear(weight, None, torch.float32)(x)

    for num_threads in (2, 3, 8):
        torch.set_num_threads(num_threads)
        layer = CpuOps(kernels.level).pack_linear(weight, None, torch.float32)
        assert torch.equal(layer(x), expected)


def test_a_zero_group_and_an_outlier_leave_other_groups_alone(
    kernels: CpuOps, make_weight: Callable[[int, int], QuantizedWeight]
) -> None:
    weight, x = make_weight(40, 96), random(3, 96)
    x[:, 32:64] = 0
    x[1, 70] = 1e30

    out = kernels.pack_linear(weight, None, torch.float32)(x)

    assert_exact(out, x, weight)


def test_rows_of_zeros_and_of_almost_nothing_give_zeros(
    kernels: CpuOps, make_weight: Callable[[int, int], QuantizedWeight]
) -> None:
    layer = kernels.pack_linear(make_weight(40, 64), None, torch.float32)
    x = torch.tensor([0.0, 1e-39, -1e-37]).bfloat16().unsqueeze(1).expand(3, 64).contiguous()

    out = layer(x)

    assert torch.equal(out, torch.zeros(3, 40))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_spoils_its_whole_row_and_no_other(
    kernels: CpuOps, make_weight: Callable[[int, int], QuantizedWeight], value: float
) -> None:
    layer = kernels.pack_linear(make_weight(40, 96), None, torch.bfloat16)
    x = random(14, 96)
    x[9, 71] = value

    out = layer(x)

    assert out[9].isnan().all()
    assert out[:9].isfinite().all()
    assert out[10:].isfinite().all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_multiplies_by_the_dequantised_weight(
    backend: str, make_weight: Callable[[int, int], QuantizedWeight]
) -> None:
    ops: Ops = BACKENDS[backend]()
    weight, x = make_weight(70, 576), random(5, 576)

    out = ops.pack_linear(weight, None, torch.float32)(x)

    exact = x.double() @ weight.dequantize(torch.float64).T
    assert (out.double() - exact).norm() <= 0.012 * exact.norm()


def test_activations_in_float32_are_left_to_the_reference(kernels: CpuOps) -> None:
    bfloat16 = random_weight(8, 40, 64, mins=False)
    weight = QuantizedWeight(8, bfloat16.codes, bfloat16.scales, dtype=torch.float32)
    x = random(3, 64).float()

    out = kernels.pack_linear(weight, None, torch.float32)(x)

    torch.testing.assert_close(out, x @ weight.dequantize(torch.float32).T)
