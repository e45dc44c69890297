"""Turns the blocks of a quantised GGUF tensor into codes, scales and mins.

Owns the layout of blocks of 8 and 4 bits. Nothing is rounded: the numbers in the file are the
numbers in the result, and only their places differ.

A block holds 32 neighbours of a row, with d the scale and m the smallest value, both float16:

    Q8_0   d  c0 c1 … c31           codes are signed; 128 is added to make them unsigned
    Q4_0   d  c0|c16 c1|c17 … c15|c31       low nibble first: the first half of the block,
    Q4_1   d  m  c0|c16 c1|c17 … c15|c31    then high nibbles: the second half

A `QuantizedWeight` has neighbours in one byte, c0|c1 c2|c3 … c30|c31, so nibbles change places.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from chatserve.kernels.quantized import QuantizedWeight
from chatserve.model.precision import Form

Bytes = NDArray[np.uint8]

_SIGN_BIT = np.uint8(0x80)  # adding 128 modulo 256 flips it


def quantized_from_blocks(blocks: Bytes, form: Form) -> QuantizedWeight:
    """Return the weight of blocks [out_features, num_groups, bytes of a block]."""
    num_halves = 2 if form.has_mins else 1
    halves, codes = np.split(blocks, [2 * num_halves], axis=2)
    scales_and_mins = np.ascontiguousarray(halves).view(np.float16)
    rows = codes ^ _SIGN_BIT if form.bits == 8 else _pair_neighbours(codes)
    return QuantizedWeight(
        bits=form.bits,
        codes=torch.from_numpy(rows.reshape(len(blocks), -1)),
        scales=_plane(scales_and_mins, 0),
        mins=_plane(scales_and_mins, 1) if form.has_mins else None,
    )


def _pair_neighbours(nibbles: Bytes) -> Bytes:
    """Regroup nibbles [..., 16] from (k, k + 16) to (2k, 2k + 1)."""
    even, odd = nibbles[..., 0::2], nibbles[..., 1::2]
    first_half = (even & 0x0F) | (odd << 4)
    second_half = (even >> 4) | (odd & 0xF0)
    return np.concatenate((first_half, second_half), axis=-1)


def _plane(values: NDArray[np.float16], index: int) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values[..., index]))
