"""The transformer blocks of a decoder, one op after another.

Owns the order of the ops within a block; every backend that has no stack of its own uses this one,
and those that have are held to it. Knows pages only as tensors that are handed through.

Two things differ from a textbook block. Rows of several requests lie one after another, and only
attention can tell them apart; and the residual stream is carried beside the hidden state, so that
each addition is fused with the norm that follows it. In the last block, only rows whose final state
is asked for go on after attention: nobody reads the others.
"""

import torch
from torch import Tensor
from torch.nn import functional

from chatserve.kernels.ops import AttentionBatch, KVPages, Ops, StackInputs, StackWeights


class OpByOpStack:
    """`LayerStack` over the single ops of a backend.

    Owns: nothing; the weights are the backend's.
    Used from: the engine thread.
    """

    def __init__(self, ops: Ops, weights: StackWeights):
        self._ops = ops
        self._weights = weights
        self._scale = weights.head_dim**-0.5

    def __call__(self, inputs: StackInputs, kv: KVPages) -> Tensor:
        eps, layers = self._weights.rms_norm_eps, self._weights.layers
        residual = functional.embedding(inputs.input_ids, self._weights.embed_tokens)
        rotary = self._weights.cos[inputs.positions], self._weights.sin[inputs.positions]
        normed = self._ops.rms_norm(residual, layers[0].attention_norm, eps)
        next_norms = [*(layer.attention_norm for layer in layers[1:]), self._weights.final_norm]
        for i, (layer, next_norm) in enumerate(zip(layers, next_norms, strict=True)):
            k_pages, v_pages = kv.k[i], kv.v[i]
            # [num_tokens, num_heads + 2 * num_kv_heads, head_dim]
            qkv = layer.qkv_proj(normed).view(normed.shape[0], -1, self._weights.head_dim)
            # Writing comes first: a token sees its own KV and that of the chunk it belongs to.
            slots = inputs.attention.slot_mapping
            q = self._ops.rotary_kv_write(qkv, *rotary, k_pages, v_pages, slots)
            attended = self._attend(q, k_pages, v_pages, inputs.attention).flatten(1)
            if i == len(layers) - 1:
                attended, residual = attended[inputs.rows], residual[inputs.rows]
            hidden = layer.o_proj(attended)
            normed, residual = self._ops.add_rms_norm(hidden, residual, layer.mlp_norm, eps)
            hidden = layer.down_proj(self._ops.silu_and_mul(layer.gate_up_proj(normed)))
            normed, residual = self._ops.add_rms_norm(hidden, residual, next_norm, eps)
        return normed

    def _attend(
        self, q: Tensor, k_pages: Tensor, v_pages: Tensor, batch: AttentionBatch
    ) -> Tensor:  # [num_tokens, num_heads, head_dim]
        num_decodes = batch.num_decodes
        parts = []
        if num_decodes:
            parts.append(
                self._ops.paged_decode(
                    q[:num_decodes],
                    k_pages,
                    v_pages,
                    batch.decode_page_table,
                    batch.decode_seq_lens,
                    self._scale,
                )
            )
        if num_decodes < q.shape[0]:
            parts.append(
                self._ops.paged_prefill(
                    q[num_decodes:],
                    k_pages,
                    v_pages,
                    batch.prefill_page_table,
                    batch.prefill_seq_lens,
                    batch.cu_seqlens_q,
                    self._scale,
                )
            )
        return parts[0] if len(parts) == 1 else torch.cat(parts)
