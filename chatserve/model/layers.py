"""The parts of one transformer block, computed over the flat token rows of a step.

Owns the weights of norms, attention and MLP. Knows pages only as tensors that are handed through
to the ops; knows no request. Activations are [num_tokens, ...]: the tokens of all requests of the
step, one after another, without padding.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from chatserve.kernels.ops import AttentionBatch, Ops, PackedLinear
from chatserve.model.config import ModelConfig


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What all layers of one forward pass share."""

    cos: Tensor  # [num_tokens, head_dim // 2], float32
    sin: Tensor  # [num_tokens, head_dim // 2], float32
    attention: AttentionBatch


class Linear(nn.Module):
    """A matrix product with optional bias; first a place for weights, then a packed layer.

    Its weights are loaded, never drawn: torch's own module initialises them, which for a model
    built on the meta device costs over a second for nothing.

    Owns: weight and bias until `pack`, the packed layer from then on.
    Used from: whoever loads the model, then the engine thread.
    """

    packed: PackedLinear

    def __init__(self, in_features: int, out_features: int, ops: Ops, *, bias: bool = False):
        super().__init__()
        self.weight: Tensor | None = nn.Parameter(torch.empty(out_features, in_features))
        self.bias: Tensor | None = nn.Parameter(torch.empty(out_features)) if bias else None
        self.ops = ops

    def pack(self, out_dtype: torch.dtype | None = None) -> None:
        """Hand the loaded weight to the ops and let go of it; outputs are of its dtype or this."""
        assert self.weight is not None, "a layer is packed once"
        weight, bias = self.weight.detach(), None if self.bias is None else self.bias.detach()
        self.packed = self.ops.pack_linear(weight, bias, out_dtype or weight.dtype)
        self.weight = self.bias = None

    def forward(self, x: Tensor) -> Tensor:
        return self.packed(x)


class Embedding(nn.Module):
    """A table of vectors by token id; like `Linear`, it is loaded, never drawn.

    Owns: the table.
    Used from: the engine thread.
    """

    def __init__(self, vocab_size: int, hidden_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size))

    def forward(self, token_ids: Tensor) -> Tensor:
        return functional.embedding(token_ids, self.weight)


class RMSNorm(nn.Module):
    """Root mean square normalisation, fused with the residual addition before it.

    Owns: its weight.
    Used from: the engine thread.
    """

    def __init__(self, size: int, eps: float, ops: Ops):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.eps = eps
        self.ops = ops

    def forward(self, x: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the norm of x + residual, and that sum; there is no residual before block 0."""
        if residual is None:
            return self.ops.rms_norm(x, self.weight, self.eps), x
        return self.ops.add_rms_norm(x, residual, self.weight, self.eps)


class Attention(nn.Module):
    """Grouped-query attention over paged KV.

    Owns: the fused query-key-value projection (rows in this order) and the output projection.
    Used from: the engine thread.
    """

    def __init__(self, config: ModelConfig, ops: Ops):
        super().__init__()
        self.head_dim = config.head_dim
        self.scale = config.head_dim**-0.5
        self.ops = ops
        num_qkv_heads = config.num_heads + 2 * config.num_kv_heads
        self.qkv_proj = Linear(
            config.hidden_size, num_qkv_heads * config.head_dim, ops, bias=config.qkv_bias
        )
        self.o_proj = Linear(
            config.num_heads * config.head_dim, config.hidden_size, ops, bias=config.o_bias
        )

    def forward(self, hidden: Tensor, step: StepInputs, k_pages: Tensor, v_pages: Tensor) -> Tensor:
        # [num_tokens, num_heads + 2 * num_kv_heads, head_dim]
        qkv = self.qkv_proj(hidden).view(hidden.shape[0], -1, self.head_dim)
        # Writing comes first: a token sees its own KV and that of the chunk it belongs to.
        q = self.ops.rotary_kv_write(
            qkv, step.cos, step.sin, k_pages, v_pages, step.attention.slot_mapping
        )
        attended = self._attend(q, k_pages, v_pages, step.attention)
        output: Tensor = self.o_proj(attended.flatten(1))  # [num_tokens, hidden_size]
        return output

    def _attend(
        self, q: Tensor, k_pages: Tensor, v_pages: Tensor, batch: AttentionBatch
    ) -> Tensor:  # [num_tokens, num_heads, head_dim]
        num_decodes = batch.num_decodes
        parts = []
        if num_decodes:
            parts.append(
                self.ops.paged_decode(
                    q[:num_decodes],
                    k_pages,
                    v_pages,
                    batch.decode_page_table,
                    batch.decode_seq_lens,
                    self.scale,
                )
            )
        if num_decodes < q.shape[0]:
            parts.append(
                self.ops.paged_prefill(
                    q[num_decodes:],
                    k_pages,
                    v_pages,
                    batch.prefill_page_table,
                    batch.prefill_seq_lens,
                    batch.cu_seqlens_q,
                    self.scale,
                )
            )
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class MLP(nn.Module):
    """The gated feed-forward network.

    Owns: the fused gate-up projection (gate rows first) and the down projection.
    Used from: the engine thread.
    """

    def __init__(self, config: ModelConfig, ops: Ops):
        super().__init__()
        self.ops = ops
        self.gate_up_proj = Linear(config.hidden_size, 2 * config.intermediate_size, ops)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, ops)

    def forward(self, hidden: Tensor) -> Tensor:
        activated = self.ops.silu_and_mul(self.gate_up_proj(hidden))
        down: Tensor = self.down_proj(activated)
        return down
