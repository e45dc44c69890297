"""Paged prefill of every backend against dense attention, over a pool poisoned with NaN."""

from itertools import accumulate, pairwise

import pytest
import torch
from kernel_helpers import (
    BACKENDS,
    DEVICE,
    HeadShape,
    assert_as_exact_as_torch,
    make_paged,
    make_queries,
)

from chatserve.kernels.ops import Ops

# (KV tokens, of which queries in this step) per request
CHUNKS = {
    "whole-prompt": [(21, 21)],
    "page-exact": [(32, 32), (16, 16)],
    "after-a-cached-prefix": [(40, 7), (48, 16)],
    "single-query": [(1, 1), (33, 1)],
    "mixed": [(5, 5), (70, 3), (16, 1), (33, 32)],
}
HEADS = {"one-head": HeadShape(1, 1, 16), "grouped": HeadShape(9, 3, 64)}


@pytest.fixture(params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Ops:
    return BACKENDS[request.param]()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_prefill_equals_dense_causal_attention(
    ops: Ops, chunks: list[tuple[int, int]], heads: HeadShape, dtype: torch.dtype
) -> None:
    case = make_paged([seq_len for seq_len, _ in chunks], heads, dtype=dtype)
    ends = [0, *accumulate(num_queries for _, num_queries in chunks)]
    q = make_queries(ends[-1], heads, dtype)
    cu_seqlens_q = torch.tensor(ends, dtype=torch.int32, device=DEVICE)
    scale = heads.head_dim**-0.5

    out = ops.paged_prefill(
        q, case.k_pages, case.v_pages, case.page_table, case.seq_lens, cu_seqlens_q, scale
    )

    assert out.dtype == dtype
    for row, (start, end) in enumerate(pairwise(ends)):
        assert_as_exact_as_torch(out[start:end], q[start:end], case.k[row], case.v[row], scale)


def test_a_query_does_not_see_what_comes_after_it(ops: Ops) -> None:
    heads = HeadShape(2, 1, 16)
    case = make_paged([20], heads, dtype=torch.float32)
    q = make_queries(20, heads, torch.float32)
    cu_seqlens_q = torch.tensor([0, 20], dtype=torch.int32, device=DEVICE)
    arguments = (case.page_table, case.seq_lens, cu_seqlens_q, 0.25)
    before = ops.paged_prefill(q, case.k_pages, case.v_pages, *arguments)

    last_page, last_offset = int(case.page_table[0, 1]), 3
    case.k_pages[last_page, last_offset] += 5.0
    case.v_pages[last_page, last_offset] += 5.0
    after = ops.paged_prefill(q, case.k_pages, case.v_pages, *arguments)

    assert torch.equal(before[:19], after[:19])
    assert not torch.equal(before[19], after[19])
