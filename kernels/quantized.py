"""Weights of linear layers in 8 or 4 bits.

Owns the record in which they travel from a file to a backend, and the rounding of weights that
come in more bits. Knows no file format and no kernel: a backend packs the record into a layout of
its own, or dequantises it.

The one idea: 32 neighbours along `in_features` form a group with a scale of its own, so that a
large weight coarsens its neighbours and no others.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

GROUP_SIZE = 32

# Groups that are rounded together: their intermediate results fit the second cache.
_GROUPS_PER_PART = 1 << 12
# What 16 steps may leave out at either end of the range of a group, as part of that range.
_CUTS = (0.0, 0.03, 0.06)


@dataclass(frozen=True, slots=True)
class QuantizedWeight:
    """A weight [out_features, in_features] as codes in groups of 32 along `in_features`.

    A weight is `scale * code + min` where there are mins, else `scale * (code - zero_point)`.

    Owns: its tensors, which nobody changes.
    Used from: whoever loads the model, and the backend that packs it.

    Raises:
        ValueError: The tensors do not go together.
    """

    bits: int  # 8 or 4
    codes: Tensor  # uint8; [out_features, in_features], or half as wide: even k in the low nibbles
    scales: Tensor  # [out_features, in_features // 32], float16
    mins: Tensor | None = None  # as scales; with 4 bits only
    dtype: torch.dtype = torch.bfloat16  # of the activations it is multiplied by

    def __post_init__(self) -> None:
        if self.bits not in (4, 8) or (self.bits == 8 and self.mins is not None):
            raise ValueError(
                f"no form of {self.bits} bits {'without' if self.mins is None else 'with'} mins"
            )
        out_features, num_groups = self.scales.shape
        num_bytes = num_groups * GROUP_SIZE * self.bits // 8
        if self.codes.shape != (out_features, num_bytes) or self.codes.dtype != torch.uint8:
            raise ValueError(
                f"codes of {self.codes.dtype} {tuple(self.codes.shape)} do not go with scales of "
                f"{tuple(self.scales.shape)} and {self.bits} bits"
            )
        for numbers in (self.scales, self.scales if self.mins is None else self.mins):
            if numbers.shape != self.scales.shape or numbers.dtype != torch.float16:
                raise ValueError(f"scales or mins of {numbers.dtype} {tuple(numbers.shape)}")

    @property
    def shape(self) -> tuple[int, int]:
        """Return (out_features, in_features)."""
        return self.scales.shape[0], self.scales.shape[1] * GROUP_SIZE

    @property
    def zero_point(self) -> int:
        """Return the code of a weight of zero, where there are no mins."""
        return 1 << (self.bits - 1)

    def dequantize(self, dtype: torch.dtype) -> Tensor:
        """Return the weight, [out_features, in_features]."""
        codes = self.codes if self.bits == 8 else _unpack_nibbles(self.codes)
        groups = codes.reshape(*self.scales.shape, GROUP_SIZE).float()
        scales = self.scales.float().unsqueeze(-1)  # [out_features, num_groups, 1]
        if self.mins is None:
            groups = (groups - self.zero_point) * scales
        else:
            groups = groups * scales + self.mins.float().unsqueeze(-1)
        return groups.flatten(1).to(dtype)


Weight = Tensor | QuantizedWeight


def quantize(weight: Tensor, bits: int) -> QuantizedWeight:
    """Return a weight [out_features, in_features] in 8 bits, or in 4 bits with mins.

    Raises:
        ValueError: `in_features` is not a multiple of the group size.
    """
    out_features, in_features = weight.shape
    if in_features % GROUP_SIZE:
        raise ValueError(
            f"a weight of {out_features} x {in_features} cannot be quantised: "
            f"{in_features} is not a multiple of {GROUP_SIZE}"
        )
    to_steps = _to_8_bits if bits == 8 else _to_4_bits
    groups = weight.reshape(-1, GROUP_SIZE)
    parts = [groups[i : i + _GROUPS_PER_PART] for i in range(0, len(groups), _GROUPS_PER_PART)]
    columns = zip(*(to_steps(part.float()) for part in parts), strict=True)
    codes, scales, mins = (torch.cat(column).view(out_features, -1) for column in columns)
    if bits == 8:
        codes += 128
        return QuantizedWeight(8, codes.to(torch.uint8), scales, None, weight.dtype)
    return QuantizedWeight(4, _pack_nibbles(codes.to(torch.uint8)), scales, mins, weight.dtype)


class _Steps(NamedTuple):
    """Groups that are rounded to steps; a code c stands for `scale * c + low`."""

    codes: Tensor  # [num_groups, GROUP_SIZE], float32
    scales: Tensor  # [num_groups, 1], float16
    lows: Tensor  # [num_groups, 1], float16


def _to_8_bits(groups: Tensor) -> _Steps:
    """Round to the nearest of 255 steps, as many on either side of zero."""
    scales = (groups.abs().amax(1, keepdim=True) / 127).half()
    codes = _nearest_codes(groups, scales, -127, 127)
    return _Steps(codes, scales, torch.zeros_like(scales))


def _to_4_bits(groups: Tensor) -> _Steps:
    """Round to 16 steps from a lowest to a highest weight, with little error in the square.

    Steps that span less than the whole range cut off its ends and are finer in between. Of a few
    spans each group takes the best.
    """
    low, high = groups.aminmax(dim=1, keepdim=True)
    candidates = [
        _fit_4_bits(groups, low + cut * (high - low), high - cut * (high - low)) for cut in _CUTS
    ]
    errors = [_squared_error(groups, steps) for steps in candidates]
    best, least = candidates[0], errors[0]
    for steps, error in zip(candidates[1:], errors[1:], strict=True):
        is_better = error < least
        best = _Steps(*(torch.where(is_better, *pair) for pair in zip(steps, best, strict=True)))
        least = torch.where(is_better, error, least)
    return best


def _fit_4_bits(groups: Tensor, low: Tensor, high: Tensor) -> _Steps:
    """Round to steps from low to high, then move them to where they fit their codes best.

    That is the straight line through (code, weight) with the least sum of squares.
    """
    codes = _nearest_codes(groups - low, (high - low) / 15, 0, 15)
    centred = codes - codes.mean(1, keepdim=True)
    slope = _divide((centred * groups).sum(1, keepdim=True), centred.square().sum(1, keepdim=True))
    scales = slope.half()
    lows = groups.mean(1, keepdim=True) - scales * codes.mean(1, keepdim=True)
    lows = lows.half()
    return _Steps(_nearest_codes(groups - lows, scales, 0, 15), scales, lows)


def _squared_error(groups: Tensor, steps: _Steps) -> Tensor:
    """Return the sum over each group, [num_groups, 1]."""
    rounded = steps.codes * steps.scales.float() + steps.lows.float()
    return (groups - rounded).square_().sum(1, keepdim=True)


def _nearest_codes(groups: Tensor, scales: Tensor, lowest: int, highest: int) -> Tensor:
    return _divide(groups, scales.float()).round_().clamp_(lowest, highest)


def _divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Return the quotient, or zero where all numbers of a group are one and no step is needed."""
    return numerator * torch.where(denominator == 0, 0, 1 / denominator)


def _pack_nibbles(codes: Tensor) -> Tensor:
    return codes[:, 0::2] | codes[:, 1::2] << 4


def _unpack_nibbles(packed: Tensor) -> Tensor:
    return torch.stack((packed & 15, packed >> 4), dim=2).flatten(1)
