"""From a batch of attention to the structure by which the library knows it.

Owns the addresses only: the batch must stay alive while the library uses the structure.
"""

import ctypes

import torch
from torch import Tensor

from chatserve.kernels.cpu.library import CAttentionBatch, CHeadShape
from chatserve.kernels.cpu.memory import address
from chatserve.kernels.ops import AttentionBatch

_MAX_HEAD_DIM = 256  # `kMaxHeadDim` of `src/attention_chunk.h`


def c_attention_batch(batch: AttentionBatch) -> CAttentionBatch:
    """Return the structure of `src/attention.h` over the tensors of a batch."""
    return CAttentionBatch(
        num_decodes=batch.num_decodes,
        decode_page_table=address(batch.decode_page_table, torch.int32),
        decode_max_pages=batch.decode_page_table.shape[1],
        decode_seq_lens=address(batch.decode_seq_lens, torch.int32),
        num_prefills=len(batch.prefill_seq_lens),
        prefill_page_table=address(batch.prefill_page_table, torch.int32),
        prefill_max_pages=batch.prefill_page_table.shape[1],
        prefill_seq_lens=address(batch.prefill_seq_lens, torch.int32),
        cu_seqlens_q=address(batch.cu_seqlens_q, torch.int32),
    )


def c_decode_batch(page_table: Tensor, seq_lens: Tensor) -> CAttentionBatch:
    """Return the structure of a batch of decodes alone."""
    return CAttentionBatch(
        num_decodes=len(seq_lens),
        decode_page_table=address(page_table, torch.int32),
        decode_max_pages=page_table.shape[1],
        decode_seq_lens=address(seq_lens, torch.int32),
    )


def c_prefill_batch(page_table: Tensor, seq_lens: Tensor, cu_seqlens_q: Tensor) -> CAttentionBatch:
    """Return the structure of a batch of prefills alone."""
    return CAttentionBatch(
        num_prefills=len(seq_lens),
        prefill_page_table=address(page_table, torch.int32),
        prefill_max_pages=page_table.shape[1],
        prefill_seq_lens=address(seq_lens, torch.int32),
        cu_seqlens_q=address(cu_seqlens_q, torch.int32),
    )


def has_head_dim(head_dim: int) -> bool:
    """Return whether the library attends heads of this size."""
    return head_dim % 2 == 0 and head_dim <= _MAX_HEAD_DIM


def can_attend(q: Tensor) -> bool:
    """Return whether the library attends such queries, [num_tokens, num_heads, head_dim]."""
    return q.dtype == torch.bfloat16 and has_head_dim(q.shape[2])


def attend(
    library: ctypes.CDLL,
    batch: CAttentionBatch,
    q: Tensor,
    k_pages: Tensor,
    v_pages: Tensor,
    scale: float,
) -> Tensor:
    """Return what the queries of a batch attend to; shapes are those of `Ops.paged_decode`."""
    _, page_size, num_kv_heads, head_dim = k_pages.shape
    assert v_pages.shape == k_pages.shape, (v_pages.shape, k_pages.shape)
    assert q.shape[2] == head_dim, (q.shape, k_pages.shape)
    assert q.shape[1] % num_kv_heads == 0, (q.shape, k_pages.shape)
    out = torch.empty_like(q)
    library.chatserve_attend(
        *(batch, CHeadShape(q.shape[1], num_kv_heads, head_dim), page_size),
        *(address(tensor, torch.bfloat16) for tensor in (q, k_pages, v_pages)),
        *(scale, out.data_ptr()),
    )
    return out
