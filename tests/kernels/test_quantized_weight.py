"""Rounding weights to 8 and 4 bits, and the record that holds them."""

import pytest
import torch
from torch import Tensor

from chatserve.kernels.quantized import GROUP_SIZE, QuantizedWeight, quantize


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def groups_of(weight: Tensor) -> Tensor:
    return weight.view(len(weight), -1, GROUP_SIZE)


def squared_error(weight: Tensor, rounded: Tensor) -> float:
    return (weight - rounded).square().sum().item()


def rounded_from_min_to_max(weight: Tensor) -> Tensor:
    low, high = groups_of(weight).aminmax(dim=-1, keepdim=True)
    step = (high - low) / 15
    return (((groups_of(weight) - low) / step).round() * step + low).flatten(1)


def test_8_bits_are_off_by_half_a_step_of_their_group_at_most() -> None:
    weight = random(20, 96)
    weight[3, 40] = 1000.0

    rounded = quantize(weight, 8).dequantize(torch.float32)

    steps = groups_of(weight).abs().amax(-1, keepdim=True) / 127
    errors = groups_of(weight - rounded).abs()
    assert (errors <= 0.53 * steps).all()  # the step itself is rounded to float16


def test_4_bits_are_nearer_than_steps_from_the_lowest_to_the_highest_weight() -> None:
    weight = random(300, 576)

    rounded = quantize(weight, 4).dequantize(torch.float32)

    plain = squared_error(weight, rounded_from_min_to_max(weight))
    assert squared_error(weight, rounded) < 0.9 * plain


@pytest.mark.parametrize("bits", [8, 4])
def test_rounded_weights_are_rounded_to_themselves(bits: int) -> None:
    rounded = quantize(random(50, 64), bits).dequantize(torch.float32)

    again = quantize(rounded, bits).dequantize(torch.float32)

    torch.testing.assert_close(again, rounded, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("value", [0.0, -0.75])
def test_equal_weights_stay_what_they_are(bits: int, value: float) -> None:
    weight = torch.full((2, 64), value)

    rounded = quantize(weight, bits).dequantize(torch.float32)

    torch.testing.assert_close(rounded, weight, rtol=1e-3, atol=0)


def test_even_columns_are_in_the_lower_halves_of_bytes() -> None:
    codes = torch.zeros(1, 16, dtype=torch.uint8)
    codes[0, 0], codes[0, 15] = 0x72, 0xF0

    weight = QuantizedWeight(4, codes, torch.ones(1, 1).half(), torch.zeros(1, 1).half())

    dequantised = weight.dequantize(torch.float32)[0]
    assert dequantised[:2].tolist() == [2, 7]
    assert dequantised[-2:].tolist() == [0, 15]


def test_without_mins_a_code_counts_from_the_middle() -> None:
    codes = torch.full((1, 32), 130, dtype=torch.uint8)

    weight = QuantizedWeight(8, codes, torch.full((1, 1), 0.5).half())

    assert torch.equal(weight.dequantize(torch.bfloat16), torch.ones(1, 32).bfloat16())


def test_a_weight_keeps_its_shape_and_the_dtype_of_its_activations() -> None:
    weight = quantize(random(7, 64).bfloat16(), 4)

    assert weight.shape == (7, 64)
    assert weight.dtype == torch.bfloat16


@pytest.mark.parametrize("bits", [8, 4])
def test_a_width_that_is_no_multiple_of_the_group_is_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="7 x 48 cannot be quantised: 48 is not a multiple of 32"):
        quantize(random(7, 48), bits)
