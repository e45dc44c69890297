"""The CPU backend: C++ kernels for bfloat16, the torch reference for the rest.

Owns the step from tensors to addresses. The kernels are built when chatserve is installed, once for
each feature level (`build.py`); the best one that the processor has is chosen here.

What a row becomes in these kernels does not depend on the rows beside it nor on the number of
threads: the same token in another batch gives the same bits.
"""

import ctypes

import torch
from torch import Tensor

from chatserve.kernels.cpu.library import CHeadShape, CLinear, load_library, usable_levels
from chatserve.kernels.cpu.memory import WeightMemory
from chatserve.kernels.ops import KVPages, PackedLinear
from chatserve.kernels.torch_ops import TorchOps

__all__ = ["CpuOps", "usable_levels"]


class CpuOps:
    """`Ops` in C++ for bfloat16 tensors; other dtypes go to the reference.

    Owns: the library's threads, as many as torch has; the memory of packed weights.
    Used from: the engine thread.
    """

    def __init__(self, level: str) -> None:
        self.level = level
        self._library = load_library(level)
        self._library.chatserve_set_num_threads(torch.get_num_threads())
        self._memory = WeightMemory()
        self._reference = TorchOps()

    def pack_linear(
        self, weight: Tensor, bias: Tensor | None, out_dtype: torch.dtype
    ) -> PackedLinear:
        if weight.dtype != torch.bfloat16 or out_dtype not in (torch.bfloat16, torch.float32):
            return self._reference.pack_linear(weight, bias, out_dtype)
        num_bytes = self._library.chatserve_packed_bytes(*weight.shape)
        packed = self._memory.empty(num_bytes)
        weight = weight.contiguous()
        self._library.chatserve_pack(weight.data_ptr(), *weight.shape, packed.data_ptr())
        return CpuLinear(self._library, packed, bias, weight.shape, out_dtype)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        if x.dtype != torch.bfloat16:
            return self._reference.rms_norm(x, weight, eps)
        normed = torch.empty_like(x)
        self._library.chatserve_rms_norm(
            _address(x), _address(weight), eps, *x.shape, normed.data_ptr()
        )
        return normed

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        if x.dtype != torch.bfloat16:
            return self._reference.add_rms_norm(x, residual, weight, eps)
        normed, total = torch.empty_like(x), torch.empty_like(x)
        self._library.chatserve_add_rms_norm(
            *(_address(x), _address(residual), _address(weight), eps, *x.shape),
            *(normed.data_ptr(), total.data_ptr()),
        )
        return normed, total

    def rotary_kv_write(
        self,
        qkv: Tensor,
        cos: Tensor,
        sin: Tensor,
        k_pages: Tensor,
        v_pages: Tensor,
        slot_mapping: Tensor,
    ) -> Tensor:
        if qkv.dtype != torch.bfloat16:
            return self._reference.rotary_kv_write(qkv, cos, sin, k_pages, v_pages, slot_mapping)
        num_tokens, _, head_dim = qkv.shape
        num_kv_heads = k_pages.shape[2]
        num_heads = qkv.shape[1] - 2 * num_kv_heads
        q = qkv.new_empty(num_tokens, num_heads, head_dim)
        self._library.chatserve_rotary_kv_write(
            *(_address(qkv), _address(cos), _address(sin), _address(slot_mapping), num_tokens),
            CHeadShape(num_heads, num_kv_heads, head_dim),
            *(q.data_ptr(), _address(k_pages), _address(v_pages)),
        )
        return q

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        if gate_up.dtype != torch.bfloat16:
            return self._reference.silu_and_mul(gate_up)
        num_tokens, width = gate_up.shape[0], gate_up.shape[1] // 2
        out = gate_up.new_empty(num_tokens, width)
        self._library.chatserve_silu_and_mul(_address(gate_up), num_tokens, width, out.data_ptr())
        return out

    def page_copy(self, kv: KVPages, sources: Tensor, destinations: Tensor) -> None:
        self._reference.page_copy(kv, sources, destinations)

    def paged_decode(
        self,
        q: Tensor,
        k_pages: Tensor,
        v_pages: Tensor,
        page_table: Tensor,
        seq_lens: Tensor,
        scale: float,
    ) -> Tensor:
        return self._reference.paged_decode(q, k_pages, v_pages, page_table, seq_lens, scale)

    def paged_prefill(
        self,
        q: Tensor,
        k_pages: Tensor,
        v_pages: Tensor,
        page_table: Tensor,
        seq_lens: Tensor,
        cu_seqlens_q: Tensor,
        scale: float,
    ) -> Tensor:
        return self._reference.paged_prefill(
            q, k_pages, v_pages, page_table, seq_lens, cu_seqlens_q, scale
        )


class CpuLinear:
    """A linear layer over bfloat16 weights in the kernel's own layout.

    Owns: the packed weight and the bias, which the library knows by their addresses.
    Used from: the engine thread.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        packed: Tensor,
        bias: Tensor | None,
        shape: torch.Size,
        out_dtype: torch.dtype,
    ):
        self._tensors = (packed, bias)
        out_features, self._in_features = shape
        self._out_features = out_features
        self._out_dtype = out_dtype
        bias_address = None if bias is None else _address(bias)
        self._layer = CLinear(packed.data_ptr(), bias_address, out_features, self._in_features)
        self._multiply = (
            library.chatserve_linear_to_bf16
            if out_dtype == torch.bfloat16
            else library.chatserve_linear_to_float
        )

    def __call__(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.bfloat16, x.dtype
        assert x.shape[1] == self._in_features, (x.shape, self._in_features)
        out = torch.empty(x.shape[0], self._out_features, dtype=self._out_dtype)
        self._multiply(self._layer, _address(x), x.shape[0], out.data_ptr())
        return out


def _address(tensor: Tensor) -> int:
    """Return where a tensor lies; the kernels know no strides."""
    assert tensor.is_contiguous(), (tensor.shape, tensor.stride())
    return tensor.data_ptr()
