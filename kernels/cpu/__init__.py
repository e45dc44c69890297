"""The CPU backend: C++ kernels for bfloat16, the torch reference for the rest.

Owns the step from tensors to addresses. The kernels are built when chatserve is installed, once for
each feature level (`build.py`); the best one that the processor has is chosen here.

What a row becomes in these kernels does not depend on the rows beside it nor on the number of
threads: the same token in another batch gives the same bits.
"""

import torch
from torch import Tensor

from chatserve.kernels.cpu.attention import (
    attend,
    c_decode_batch,
    c_prefill_batch,
    can_attend,
)
from chatserve.kernels.cpu.layer_stack import CpuStack, can_stack
from chatserve.kernels.cpu.library import CHeadShape, load_library, usable_levels
from chatserve.kernels.cpu.linear import CpuLinear
from chatserve.kernels.cpu.memory import WeightMemory, address
from chatserve.kernels.layer_stack import OpByOpStack
from chatserve.kernels.ops import KVPages, LayerStack, PackedLinear, StackWeights
from chatserve.kernels.quantized import Weight
from chatserve.kernels.torch_ops import TorchOps

__all__ = ["CpuOps", "usable_levels"]


class CpuOps:
    """`Ops` in C++ for bfloat16 tensors; other dtypes go to the reference.

    Owns: the memory of packed weights. The library's threads belong to all that use its level in
    this process; whoever sets their number last decides.
    Used from: the engine thread.
    """

    def __init__(self, level: str) -> None:
        self.level = level
        self._library = load_library(level)
        self.use_threads(torch.get_num_threads())
        self._memory = WeightMemory()
        self._reference = TorchOps()

    def use_threads(self, num_threads: int) -> None:
        """Compute with so many threads from now on, the caller's among them."""
        assert num_threads >= 1, num_threads
        self._library.chatserve_set_num_threads(num_threads)

    def stack_layers(self, weights: StackWeights) -> LayerStack:
        if can_stack(weights):
            return CpuStack(self._library, weights)
        return OpByOpStack(self, weights)

    def pack_linear(
        self, weight: Weight, bias: Tensor | None, out_dtype: torch.dtype
    ) -> PackedLinear:
        if weight.dtype != torch.bfloat16 or out_dtype not in (torch.bfloat16, torch.float32):
            return self._reference.pack_linear(weight, bias, out_dtype)
        return CpuLinear(self._library, self._memory, weight, bias, out_dtype)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        if x.dtype != torch.bfloat16:
            return self._reference.rms_norm(x, weight, eps)
        normed = torch.empty_like(x)
        self._library.chatserve_rms_norm(*_bf16(x, weight), eps, *x.shape, normed.data_ptr())
        return normed

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        if x.dtype != torch.bfloat16:
            return self._reference.add_rms_norm(x, residual, weight, eps)
        assert residual.shape == x.shape, (residual.shape, x.shape)
        normed, total = torch.empty_like(x), torch.empty_like(x)
        self._library.chatserve_add_rms_norm(
            *(*_bf16(x, residual, weight), eps, *x.shape),
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
            *(*_bf16(qkv), address(cos, torch.float32), address(sin, torch.float32)),
            *(address(slot_mapping, torch.int64), num_tokens),
            CHeadShape(num_heads, num_kv_heads, head_dim),
            *(q.data_ptr(), *_bf16(k_pages, v_pages)),
        )
        return q

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        if gate_up.dtype != torch.bfloat16:
            return self._reference.silu_and_mul(gate_up)
        num_tokens, width = gate_up.shape[0], gate_up.shape[1] // 2
        out = gate_up.new_empty(num_tokens, width)
        self._library.chatserve_silu_and_mul(*_bf16(gate_up), num_tokens, width, out.data_ptr())
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
        if not can_attend(q):
            return self._reference.paged_decode(q, k_pages, v_pages, page_table, seq_lens, scale)
        batch = c_decode_batch(page_table, seq_lens)
        return attend(self._library, batch, q, k_pages, v_pages, scale)

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
        if not can_attend(q):
            return self._reference.paged_prefill(
                q, k_pages, v_pages, page_table, seq_lens, cu_seqlens_q, scale
            )
        batch = c_prefill_batch(page_table, seq_lens, cu_seqlens_q)
        return attend(self._library, batch, q, k_pages, v_pages, scale)


def _bf16(*tensors: Tensor) -> list[int]:
    """Return the addresses of bfloat16 tensors."""
    return [address(tensor, torch.bfloat16) for tensor in tensors]
