"""Attention of one query token per request over its pages, split along the sequence.

A decode step has few queries and much KV: one program per request and KV head would leave most of
a GPU idle while the longest request is read. So each sequence is cut into `num_splits` runs:

    request 0   |■■■■■■■■|■■■■■■■■|■■■■    |   one program per (request, KV head, split)
    request 1   |■■      |        |        |   splits follow each request's own length
                    ↓ partial output and log-sum-exp of each run
    merge       one program per (request, query head)

1. `decode_split_kernel` walks its run in tiles of BLOCK_N tokens with an online softmax. The query
   heads that share a KV head are the rows of one tile, so their KV is read once. They are padded
   to BLOCK_G rows, the least that a tensor-core product takes.
2. `decode_merge_kernel` weighs the partial outputs by exp(lse - max lse).

Nothing is read from the device to choose the launch: `num_splits` follows from shapes alone.
Rejected: a loop over whole pages as tiles, since 16 tokens are too few to keep loads in flight.

Bytes moved per call: sum(seq_lens) * num_kv_heads * head_dim * 2 * itemsize for the KV, and
2 * num_requests * num_heads * num_splits * (head_dim + 1) * 4 for the partial results.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK_N = 64
_MIN_DOT_ROWS = 16
_MAX_SPLITS = 64
_PROGRAMS_PER_PROCESSOR = 4
_PROCESSORS_WITHOUT_GPU = 8


def paged_decode(
    q: Tensor,  # [num_requests, num_heads, head_dim]
    k_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
    v_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
    page_table: Tensor,  # [num_requests, max_pages], int32
    seq_lens: Tensor,  # [num_requests], int32; KV tokens, this step's included
    scale: float,
) -> Tensor:  # [num_requests, num_heads, head_dim]
    """Attend one query token per request to its paged KV."""
    _check(q, k_pages, v_pages, page_table, seq_lens)
    num_requests, num_heads, head_dim = q.shape
    page_size, num_kv_heads = k_pages.shape[1:3]
    max_pages = page_table.shape[1]
    num_splits = _choose_num_splits(q.device, num_requests * num_kv_heads, max_pages * page_size)
    partial = q.new_empty((num_requests, num_heads, num_splits, head_dim), dtype=torch.float32)
    lse = q.new_empty((num_requests, num_heads, num_splits), dtype=torch.float32)
    out = torch.empty_like(q)
    group_size = num_heads // num_kv_heads
    block_d = max(_MIN_DOT_ROWS, triton.next_power_of_2(head_dim))
    decode_split_kernel[(num_requests, num_kv_heads, num_splits)](
        q,
        k_pages,
        v_pages,
        page_table,
        seq_lens,
        partial,
        lse,
        scale,
        max_pages,
        PAGE_SIZE=page_size,
        NUM_KV_HEADS=num_kv_heads,
        GROUP_SIZE=group_size,
        HEAD_DIM=head_dim,
        BLOCK_G=max(_MIN_DOT_ROWS, triton.next_power_of_2(group_size)),
        BLOCK_N=_BLOCK_N,
        BLOCK_D=block_d,
        enable_fp_fusion=True,
    )
    decode_merge_kernel[(num_requests * num_heads,)](
        partial,
        lse,
        out,
        num_splits,
        HEAD_DIM=head_dim,
        BLOCK_S=triton.next_power_of_2(num_splits),
        BLOCK_D=block_d,
        enable_fp_fusion=True,
    )
    return out


@triton.jit  # type: ignore[untyped-decorator]
def decode_split_kernel(
    q_ptr: tl.tensor,  # [num_requests, num_heads, HEAD_DIM]
    k_ptr: tl.tensor,  # [num_pages, PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM]
    v_ptr: tl.tensor,  # [num_pages, PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM]
    page_table_ptr: tl.tensor,  # [num_requests, max_pages], int32
    seq_lens_ptr: tl.tensor,  # [num_requests], int32
    partial_ptr: tl.tensor,  # [num_requests, num_heads, num_splits, HEAD_DIM], float32
    lse_ptr: tl.tensor,  # [num_requests, num_heads, num_splits], float32
    scale: float,
    max_pages: int,
    PAGE_SIZE: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    GROUP_SIZE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
) -> None:
    # G: query heads of one KV head, N: tokens of a tile, D: head dimension
    request = tl.program_id(0)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    num_splits = tl.num_programs(2)

    seq_len = tl.load(seq_lens_ptr + request)
    split_len = tl.cdiv(tl.cdiv(seq_len, num_splits), BLOCK_N) * BLOCK_N
    start = split * split_len
    end = tl.minimum(start + split_len, seq_len)

    group_row = tl.arange(0, BLOCK_G)
    dim = tl.arange(0, BLOCK_D)
    head = kv_head * GROUP_SIZE + group_row
    q_row = request * NUM_KV_HEADS * GROUP_SIZE + head
    # Padded rows are heads of the next KV head; padded columns are the next head's dimensions.
    is_q = (group_row < GROUP_SIZE)[:, None] & (dim < HEAD_DIM)[None, :]
    q = tl.load(q_ptr + q_row[:, None] * HEAD_DIM + dim[None, :], mask=is_q, other=0.0)
    # Q: (BLOCK_G, BLOCK_D)

    running_max = tl.full((BLOCK_G,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_G,), tl.float32)
    acc = tl.zeros((BLOCK_G, BLOCK_D), tl.float32)
    for tile_start in range(start, end, BLOCK_N):
        token = tile_start + tl.arange(0, BLOCK_N)
        # Slots after the end belong to nobody, or to a later split; they may hold NaN.
        is_token = token < end
        page = tl.load(
            page_table_ptr + request * max_pages + token // PAGE_SIZE, mask=is_token, other=0
        )
        slot = page.to(tl.int64) * PAGE_SIZE + token % PAGE_SIZE
        kv_offset = (slot * NUM_KV_HEADS + kv_head)[:, None] * HEAD_DIM + dim[None, :]
        is_kv = is_token[:, None] & (dim < HEAD_DIM)[None, :]

        k = tl.load(k_ptr + kv_offset, mask=is_kv, other=0.0)  # K: (BLOCK_N, BLOCK_D)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale  # (BLOCK_G, BLOCK_N)
        # A slot that was not read scores zero, which would still take weight.
        scores = tl.where(is_token[None, :], scores, -float("inf"))

        new_max = tl.maximum(running_max, tl.max(scores, axis=1))
        shrink = tl.exp(running_max - new_max)
        weights = tl.exp(scores - new_max[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + kv_offset, mask=is_kv, other=0.0)  # V: (BLOCK_N, BLOCK_D)
        update = tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        acc = acc * shrink[:, None] + update
        running_max = new_max

    # An empty split must leave zeros of weight exp(-inf), not 0 / 0.
    total = tl.where(total > 0.0, total, 1.0)
    partial = acc / total[:, None]
    split_row = q_row * num_splits + split
    tl.store(partial_ptr + split_row[:, None] * HEAD_DIM + dim[None, :], partial, mask=is_q)
    tl.store(lse_ptr + split_row, running_max + tl.log(total), mask=group_row < GROUP_SIZE)


@triton.jit  # type: ignore[untyped-decorator]
def decode_merge_kernel(
    partial_ptr: tl.tensor,  # [num_requests * num_heads, num_splits, HEAD_DIM], float32
    lse_ptr: tl.tensor,  # [num_requests * num_heads, num_splits], float32
    out_ptr: tl.tensor,  # [num_requests * num_heads, HEAD_DIM]
    num_splits: int,
    HEAD_DIM: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
) -> None:
    # S: splits, D: head dimension
    row = tl.program_id(0)
    split = tl.arange(0, BLOCK_S)
    dim = tl.arange(0, BLOCK_D)
    # Splits and dimensions are padded to powers of two; the padding is the next row's.
    is_split = split < num_splits
    is_dim = dim < HEAD_DIM
    lse = tl.load(lse_ptr + row * num_splits + split, mask=is_split, other=-float("inf"))
    weights = tl.exp(lse - tl.max(lse, axis=0))  # (BLOCK_S)
    partial = tl.load(
        partial_ptr + (row * num_splits + split)[:, None] * HEAD_DIM + dim[None, :],
        mask=is_split[:, None] & is_dim[None, :],
        other=0.0,
    )  # (BLOCK_S, BLOCK_D)
    merged = tl.sum(weights[:, None] * partial, axis=0) / tl.sum(weights, axis=0)
    tl.store(out_ptr + row * HEAD_DIM + dim, merged, mask=is_dim)


def _check(
    q: Tensor, k_pages: Tensor, v_pages: Tensor, page_table: Tensor, seq_lens: Tensor
) -> None:
    for name, tensor in (
        ("q", q),
        ("k_pages", k_pages),
        ("v_pages", v_pages),
        ("page_table", page_table),
        ("seq_lens", seq_lens),
    ):
        assert tensor.is_contiguous(), f"{name} {tuple(tensor.shape)} must be contiguous"
    assert q.dtype == k_pages.dtype == v_pages.dtype, f"{q.dtype}, {k_pages.dtype}, {v_pages.dtype}"
    assert page_table.dtype == seq_lens.dtype == torch.int32, "page table and lengths are int32"
    assert q.shape[1] % k_pages.shape[2] == 0, (
        f"{q.shape[1]} heads over {k_pages.shape[2]} KV heads"
    )


def _choose_num_splits(device: torch.device, num_rows: int, max_len: int) -> int:
    """Return into how many runs a sequence is cut.

    Enough that all processors have work, but no run shorter than a tile.
    """
    processors = _PROCESSORS_WITHOUT_GPU
    if device.type == "cuda":
        processors = torch.cuda.get_device_properties(device).multi_processor_count
    wanted = triton.cdiv(processors * _PROGRAMS_PER_PROCESSOR, num_rows)
    return int(max(1, min(wanted, triton.cdiv(max_len, _BLOCK_N), _MAX_SPLITS)))
