"""The contract between the model and whatever computes it.

Owns the vocabulary (page, slot, page table, slot mapping) and the shapes of every op; `README.md`
beside this file draws the layout. Knows no model, no request and no schedule. A backend is an
object with these methods: `torch_ops.TorchOps` is the readable reference that runs anywhere,
`cpu.CpuOps` is C++, `triton.TritonOps` replaces what matters on a GPU. Tests hold every backend to
the reference.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class KVPages:
    """The KV pool's tensors; both [num_layers, num_pages, page_size, num_kv_heads, head_dim]."""

    k: Tensor
    v: Tensor


@dataclass(frozen=True, slots=True)
class AttentionBatch:
    """Where the rows of one step live and what they may see.

    The step's tokens are laid out decodes first: rows [0, num_decodes) are one token of one
    request each, the rest are prefill chunks, concatenated. Every token of the step has its KV
    written before anyone attends; a query sees all KV of its request up to its own position.
    """

    slot_mapping: Tensor  # [num_tokens], int64: page_id * page_size + offset
    num_decodes: int
    decode_page_table: Tensor  # [num_decodes, max_pages], int32
    decode_seq_lens: Tensor  # [num_decodes], int32; KV tokens, this step's included
    prefill_page_table: Tensor  # [num_prefills, max_pages], int32
    prefill_seq_lens: Tensor  # [num_prefills], int32; KV tokens, this step's included
    cu_seqlens_q: Tensor  # [num_prefills + 1], int32; cumulative query lengths
    max_seqlen_q: int


class PackedLinear(Protocol):
    """A linear layer in the form in which a backend multiplies by it."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return x @ weight.T + bias, [num_tokens, out_features]; x: [num_tokens, in_features]."""


class Ops(Protocol):
    """One implementation of everything the decoder computes."""

    def pack_linear(
        self, weight: Tensor, bias: Tensor | None, out_dtype: torch.dtype
    ) -> PackedLinear:
        """Take in a layer: weight [out_features, in_features], bias [out_features].

        The result may hold the tensors themselves or copies in another layout. Its inputs are of
        the weight's dtype, its outputs of `out_dtype`.
        """

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Return x / rms(x) * weight over the last dimension; x is [num_tokens, hidden]."""

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        """Return (rms_norm(x + residual), x + residual), both [num_tokens, hidden]."""

    def rotary_kv_write(
        self,
        qkv: Tensor,  # [num_tokens, num_heads + 2 * num_kv_heads, head_dim]
        cos: Tensor,  # [num_tokens, head_dim // 2], float32, gathered for the tokens' positions
        sin: Tensor,  # [num_tokens, head_dim // 2], float32
        k_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
        v_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
        slot_mapping: Tensor,  # [num_tokens], int64
    ) -> Tensor:  # [num_tokens, num_heads, head_dim]
        """Return the rotated queries; write the rotated keys and the values into their slots.

        Heads are rotated by halves (the Hugging Face layout).
        """

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        """Return silu(gate) * up for gate_up [num_tokens, 2 * intermediate], gate first."""

    def page_copy(self, kv: KVPages, sources: Tensor, destinations: Tensor) -> None:
        """Copy whole pages in every layer; both index tensors are [num_copies], int64.

        All sources are read before any destination is written, so a page may be both. None may be
        a destination twice.
        """

    def paged_decode(
        self,
        q: Tensor,  # [num_requests, num_heads, head_dim]
        k_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
        v_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
        page_table: Tensor,  # [num_requests, max_pages], int32
        seq_lens: Tensor,  # [num_requests], int32; KV tokens, this step's included
        scale: float,
    ) -> Tensor:  # [num_requests, num_heads, head_dim]
        """Attend one query token per request to its paged KV."""

    def paged_prefill(
        self,
        q: Tensor,  # [num_tokens, num_heads, head_dim]
        k_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
        v_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
        page_table: Tensor,  # [num_requests, max_pages], int32
        seq_lens: Tensor,  # [num_requests], int32; KV tokens, this step's included
        cu_seqlens_q: Tensor,  # [num_requests + 1], int32
        scale: float,
    ) -> Tensor:  # [num_tokens, num_heads, head_dim]
        """Attend each request's last query tokens to its paged KV, causally.

        Query i of a request with n queries and s KV tokens sits at position s - n + i and sees
        positions 0 to s - n + i.
        """
