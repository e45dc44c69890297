"""Linear layers in the library's own layout.

Owns the memory of packed weights, which the library knows by their addresses.
"""

import ctypes

import torch
from torch import Tensor

from chatserve.kernels.cpu.library import CLinear, CQuantizedWeight
from chatserve.kernels.cpu.memory import WeightMemory, address
from chatserve.kernels.quantized import QuantizedWeight, Weight

# `WeightFormat` of `src/linear.h`; the quantised ones by their bits and whether they have mins.
_BF16 = 0
_QUANTIZED = {(8, False): 8, (4, False): 4, (4, True): 5}


class CpuLinear:
    """A linear layer for bfloat16 inputs over a weight in bfloat16, 8 or 4 bits, packed.

    Owns: the packed weight and the bias.
    Used from: the engine thread.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        memory: WeightMemory,
        weight: Weight,
        bias: Tensor | None,
        out_dtype: torch.dtype,
    ):
        self._out_features, self._in_features = weight.shape
        self._out_dtype = out_dtype
        weight_format = _format_of(weight)
        packed = memory.empty(library.chatserve_packed_bytes(*weight.shape, weight_format))
        if isinstance(weight, QuantizedWeight):
            _pack_quantized(library, weight, packed)
        else:
            weight = weight.contiguous()
            library.chatserve_pack(weight.data_ptr(), *weight.shape, packed.data_ptr())
        self._tensors = (packed, bias)
        bias_address = None if bias is None else address(bias, torch.bfloat16)
        self.c_layer = CLinear(packed.data_ptr(), bias_address, *weight.shape, weight_format)
        self._multiply = (
            library.chatserve_linear_to_bf16
            if out_dtype == torch.bfloat16
            else library.chatserve_linear_to_float
        )

    def __call__(self, x: Tensor) -> Tensor:
        assert x.shape[1] == self._in_features, (x.shape, self._in_features)
        out = torch.empty(x.shape[0], self._out_features, dtype=self._out_dtype)
        self._multiply(self.c_layer, address(x, torch.bfloat16), x.shape[0], out.data_ptr())
        return out


def _format_of(weight: Weight) -> int:
    if isinstance(weight, QuantizedWeight):
        return _QUANTIZED[weight.bits, weight.mins is not None]
    return _BF16


def _pack_quantized(library: ctypes.CDLL, weight: QuantizedWeight, packed: Tensor) -> None:
    codes, scales = weight.codes.contiguous(), weight.scales.contiguous()
    mins = None if weight.mins is None else weight.mins.contiguous()
    parts = CQuantizedWeight(
        address(codes, torch.uint8),
        address(scales, torch.float16),
        None if mins is None else address(mins, torch.float16),
    )
    library.chatserve_pack_quantized(parts, *weight.shape, _format_of(weight), packed.data_ptr())
