"""The GPU backend: Triton where it matters, the torch reference for the rest.

Importing this package imports Triton; only `chatserve.kernels.get_ops` does so, for a GPU. Decode
reads scattered pages, which plain torch can only do through a gathered copy. The other ops are as
fast as memory in plain torch, or run rarely.
"""

import torch
from torch import Tensor

from chatserve.kernels.layer_stack import OpByOpStack
from chatserve.kernels.ops import KVPages, LayerStack, PackedLinear, StackWeights
from chatserve.kernels.quantized import Weight
from chatserve.kernels.torch_ops import TorchOps
from chatserve.kernels.triton.paged_decode import paged_decode

__all__ = ["TritonOps"]


class TritonOps:
    """`Ops` with paged decode in Triton.

    Owns: the reference that computes everything else.
    Used from: the engine thread.
    """

    def __init__(self) -> None:
        self._reference = TorchOps()

    def stack_layers(self, weights: StackWeights) -> LayerStack:
        return OpByOpStack(self, weights)

    def pack_linear(
        self, weight: Weight, bias: Tensor | None, out_dtype: torch.dtype
    ) -> PackedLinear:
        return self._reference.pack_linear(weight, bias, out_dtype)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        return self._reference.rms_norm(x, weight, eps)

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        return self._reference.add_rms_norm(x, residual, weight, eps)

    def rotary_kv_write(
        self,
        qkv: Tensor,
        cos: Tensor,
        sin: Tensor,
        k_pages: Tensor,
        v_pages: Tensor,
        slot_mapping: Tensor,
    ) -> Tensor:
        return self._reference.rotary_kv_write(qkv, cos, sin, k_pages, v_pages, slot_mapping)

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        return self._reference.silu_and_mul(gate_up)

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
        return paged_decode(q, k_pages, v_pages, page_table, seq_lens, scale)

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
