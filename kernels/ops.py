"""The contract between the model and whatever computes it.

Owns the vocabulary (page, slot, page table, slot mapping) and the shapes of every op; `README.md`
beside this file draws the layout. Knows no model file, no request and no schedule. A backend is an
object with these methods: `torch_ops.TorchOps` is the readable reference that runs anywhere,
`cpu.CpuOps` is C++, `triton.TritonOps` replaces what matters on a GPU. Tests hold every backend to
the reference.

The decoder asks for two things only: its layers as one stack, embedding included, and the output
head. `layer_stack.py` builds the stack from the ops below, one call each; a backend that can run
all layers in one call does, and is held to the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from chatserve.kernels.quantized import Weight


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


class PackedLinear(Protocol):
    """A linear layer in the form in which a backend multiplies by it."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return x @ weight.T + bias, [num_tokens, out_features]; x: [num_tokens, in_features]."""


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One transformer block; norms are [hidden_size]."""

    attention_norm: Tensor
    qkv_proj: PackedLinear  # rows of the queries, then of the keys, then of the values
    o_proj: PackedLinear
    mlp_norm: Tensor
    gate_up_proj: PackedLinear  # rows of the gate first
    down_proj: PackedLinear


@dataclass(frozen=True, slots=True)
class StackWeights:
    """All blocks of a decoder, what comes before and after, and what shapes do not tell."""

    embed_tokens: Tensor  # [vocab_size, hidden_size]
    cos: Tensor  # [max_positions, head_dim // 2], float32
    sin: Tensor  # [max_positions, head_dim // 2], float32
    layers: Sequence[LayerWeights]
    final_norm: Tensor  # [hidden_size]
    head_dim: int
    rms_norm_eps: float


@dataclass(frozen=True, slots=True)
class StackInputs:
    """The tokens of one step."""

    input_ids: Tensor  # [num_tokens], int64
    positions: Tensor  # [num_tokens], int64; each token's index in its own sequence
    attention: AttentionBatch
    rows: Tensor  # [num_rows], int64, ascending; the tokens whose final state is asked for


class LayerStack(Protocol):
    """A decoder from token ids to final states."""

    def __call__(self, inputs: StackInputs, kv: KVPages) -> Tensor:
        """Write the KV of all tokens; return the final states of `rows`, [num_rows, hidden_size].

        Raises:
            IndexError: A token id or a position lies outside its table.
        """


class Ops(Protocol):
    """One implementation of everything the decoder computes."""

    def stack_layers(self, weights: StackWeights) -> LayerStack:
        """Take in all blocks of a decoder, whose matrices `pack_linear` has taken in before."""

    def pack_linear(
        self, weight: Weight, bias: Tensor | None, out_dtype: torch.dtype
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
