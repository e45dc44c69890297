"""Paged decode of every backend against dense attention, over a pool poisoned with NaN."""

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

# Triton's interpreter multiplies bfloat16 by its bit patterns; bfloat16 needs a GPU or the
# compile checks.
DTYPES = [torch.float32, torch.float16] + [torch.bfloat16] * (DEVICE == "cuda")
HEADS = {
    "one-head": HeadShape(1, 1, 16),
    "grouped": HeadShape(9, 3, 64),
    "all-share-one": HeadShape(8, 1, 32),
    "head-dim-no-power-of-two": HeadShape(4, 2, 80),
}
LENGTHS = {
    "single-token": [1],
    "page-exact": [16, 64],
    "odd": [3, 77, 131],
    "very-unequal": [1, 300, 2],
    "padded-by-hundreds": [520, 1010],
}


@pytest.fixture(params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Ops:
    return BACKENDS[request.param]()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("seq_lens", LENGTHS.values(), ids=LENGTHS)
def test_decode_equals_dense_attention(
    ops: Ops, seq_lens: list[int], heads: HeadShape, dtype: torch.dtype
) -> None:
    case = make_paged(seq_lens, heads, dtype=dtype)
    q = make_queries(len(seq_lens), heads, dtype)
    scale = heads.head_dim**-0.5

    out = ops.paged_decode(q, case.k_pages, case.v_pages, case.page_table, case.seq_lens, scale)

    assert out.dtype == dtype
    for row, (k, v) in enumerate(zip(case.k, case.v, strict=True)):
        assert_as_exact_as_torch(out[row, None], q[row, None], k, v, scale)


@pytest.mark.parametrize("page_size", [1, 4, 32])
def test_decode_follows_pages_of_any_size(ops: Ops, page_size: int) -> None:
    heads = HeadShape(4, 2, 32)
    case = make_paged([7, 33], heads, page_size=page_size, dtype=torch.float32)
    q = make_queries(2, heads, torch.float32)

    out = ops.paged_decode(q, case.k_pages, case.v_pages, case.page_table, case.seq_lens, 0.2)

    for row, (k, v) in enumerate(zip(case.k, case.v, strict=True)):
        assert_as_exact_as_torch(out[row, None], q[row, None], k, v, 0.2)


def test_two_requests_may_share_their_pages(ops: Ops) -> None:
    heads = HeadShape(4, 2, 32)
    case = make_paged([40], heads, dtype=torch.float32)
    q = make_queries(2, heads, torch.float32)
    shared_table = case.page_table.repeat(2, 1)
    seq_lens = torch.tensor([40, 17], dtype=torch.int32, device=DEVICE)

    out = ops.paged_decode(q, case.k_pages, case.v_pages, shared_table, seq_lens, 0.2)

    assert_as_exact_as_torch(out[0, None], q[0, None], case.k[0], case.v[0], 0.2)
    assert_as_exact_as_torch(out[1, None], q[1, None], case.k[0][:17], case.v[0][:17], 0.2)


def test_large_scores_do_not_overflow(ops: Ops) -> None:
    heads = HeadShape(2, 1, 16)
    case = make_paged([50], heads, dtype=torch.float32)
    q = make_queries(1, heads, torch.float32) * 1000

    out = ops.paged_decode(q, case.k_pages, case.v_pages, case.page_table, case.seq_lens, 1.0)

    assert_as_exact_as_torch(out, q, case.k[0], case.v[0], 1.0)
