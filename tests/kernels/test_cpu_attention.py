"""Attention of the CPU kernels: close to dense attention, and the same bits however it is computed.

One row's attention is computed alone, in a batch, over shared pages, in other pages, as part of a
prefill and by several threads; all of them must agree by `==`, over pools poisoned with NaN.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernel_helpers import (
    HeadShape,
    PagedCase,
    assert_as_exact_as_torch,
    cpu_ops,
    make_paged,
    make_queries,
)
from torch import Tensor

from chatserve.kernels.cpu import CpuOps, usable_levels
from chatserve.kernels.cpu.build import LEVELS
from chatserve.kernels.torch_ops import TorchOps

BF16 = torch.bfloat16
# Around the ends of pages (16), chunks (64) and spans (256).
LENGTHS = [1, 15, 16, 17, 63, 64, 65, 128, 255, 256, 257, 600]
HEADS = {
    "one-each": HeadShape(2, 2, 64),
    "two-share": HeadShape(4, 2, 80),
    "three-share": HeadShape(9, 3, 64),
    "seven-share": HeadShape(14, 2, 128),
    "small": HeadShape(3, 1, 6),
    "largest": HeadShape(2, 1, 256),
    "more-rows-than-a-task": HeadShape(97, 1, 16),
}
HEAD = HeadShape(9, 3, 64)
SCALE = 0.125


@pytest.fixture(params=LEVELS)
def ops(request: pytest.FixtureRequest) -> CpuOps:
    return cpu_ops(request.param)


@pytest.fixture
def one_thread_after() -> Iterator[None]:
    """Give the kernels' threads back, as many as torch has."""
    yield
    for level in usable_levels():
        CpuOps(level)


def decode(ops: CpuOps | TorchOps, q: Tensor, case: PagedCase) -> Tensor:
    return ops.paged_decode(q, case.k_pages, case.v_pages, case.page_table, case.seq_lens, SCALE)


def prefill(ops: CpuOps | TorchOps, q: Tensor, case: PagedCase, num_queries: list[int]) -> Tensor:
    starts = torch.tensor([0, *accumulate(num_queries)], dtype=torch.int32)
    tables = (case.page_table, case.seq_lens, starts)
    return ops.paged_prefill(q, case.k_pages, case.v_pages, *tables, SCALE)


def rows_of(case: PagedCase, rows: Sequence[int], seq_lens: Sequence[int]) -> PagedCase:
    """Return requests over the pages of these rows, cut to other lengths."""
    return replace(
        case,
        page_table=case.page_table[list(rows)].contiguous(),
        seq_lens=torch.tensor(seq_lens, dtype=torch.int32),
    )


def in_chunks(ops: CpuOps, q: Tensor, case: PagedCase, sizes: Sequence[int]) -> Tensor:
    """Prefill the one request of `case` in chunks of these sizes."""
    ends = [0, *accumulate(sizes)]
    return torch.cat(
        [
            prefill(ops, q[start:end], rows_of(case, [0], [end]), [end - start])
            for start, end in pairwise(ends)
        ]
    )


@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
def test_decode_is_as_exact_as_torch(ops: CpuOps, heads: HeadShape) -> None:
    case = make_paged(LENGTHS, heads, dtype=BF16)
    q = make_queries(len(LENGTHS), heads, BF16)

    out = decode(ops, q, case)

    for row, (k, v) in enumerate(zip(case.k, case.v, strict=True)):
        assert_as_exact_as_torch(out[row, None], q[row, None], k, v, SCALE)


@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
def test_prefill_is_as_exact_as_torch(ops: CpuOps, heads: HeadShape) -> None:
    num_queries = [1, 33, 64, 65, 130, 2]
    case = make_paged([1, 33, 64, 300, 256, 513], heads, dtype=BF16)
    q = make_queries(sum(num_queries), heads, BF16)

    out = prefill(ops, q, case, num_queries)

    ends = [0, *accumulate(num_queries)]
    for row, (start, end) in enumerate(pairwise(ends)):
        assert_as_exact_as_torch(out[start:end], q[start:end], case.k[row], case.v[row], SCALE)


@pytest.mark.parametrize("page_size", [1, 2, 4, 16, 24, 128])
def test_pages_may_have_any_size(ops: CpuOps, page_size: int) -> None:
    seq_lens = [1, page_size, 64, 64 + page_size, 300]
    case = make_paged(seq_lens, HEAD, page_size=page_size, dtype=BF16)
    q = make_queries(len(seq_lens), HEAD, BF16)

    out = decode(ops, q, case)

    for row, (k, v) in enumerate(zip(case.k, case.v, strict=True)):
        assert_as_exact_as_torch(out[row, None], q[row, None], k, v, SCALE)
    torch.testing.assert_close(out, decode(TorchOps(), q, case), rtol=0.02, atol=0.02)


def test_no_requests_give_no_rows(ops: CpuOps) -> None:
    case = rows_of(make_paged([5], HEAD, dtype=BF16), [], [])

    assert decode(ops, make_queries(0, HEAD, BF16), case).shape == (0, 9, 64)
    assert prefill(ops, make_queries(0, HEAD, BF16), case, []).shape == (0, 9, 64)


def test_a_row_has_the_same_bits_alone_and_in_a_batch(ops: CpuOps) -> None:
    case = make_paged(LENGTHS, HEAD, dtype=BF16)
    q = make_queries(len(LENGTHS), HEAD, BF16)

    together = decode(ops, q, case)

    for row, seq_len in enumerate(LENGTHS):
        alone = decode(ops, q[row : row + 1], rows_of(case, [row], [seq_len]))
        assert torch.equal(together[row], alone[0])


def test_shared_pages_change_no_bit(ops: CpuOps) -> None:
    """Prefixes of several lengths, one within another, against every request by itself."""
    seq_lens = [700, 700, 640, 300, 700, 64, 1, 513, 700]
    case = make_paged([700, 700], HEAD, dtype=BF16)
    shared = rows_of(case, [0] * len(seq_lens), seq_lens)
    shared.page_table[2, 20:] = case.page_table[1, 20:]
    shared.page_table[4, 36:] = case.page_table[1, 36:]
    shared.page_table[8] = case.page_table[1]
    q = make_queries(len(seq_lens), HEAD, BF16)

    grouped = decode(ops, q, shared)

    for row, seq_len in enumerate(seq_lens):
        request = replace(
            shared,
            page_table=shared.page_table[row : row + 1],
            seq_lens=torch.tensor([seq_len], dtype=torch.int32),
        )
        assert torch.equal(grouped[row], decode(ops, q[row : row + 1], request)[0])
    torch.testing.assert_close(grouped, decode(TorchOps(), q, shared), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("num_sessions", [2, 33, 70])
def test_sharing_and_copies_of_the_same_contents_agree(ops: CpuOps, num_sessions: int) -> None:
    case = make_paged([330], HEAD, dtype=BF16)
    shared = rows_of(case, [0] * num_sessions, [330] * num_sessions)
    num_pages = len(case.k_pages)
    offsets = torch.arange(num_sessions, dtype=torch.int32)[:, None] * num_pages
    copied = replace(
        shared,
        k_pages=case.k_pages.repeat(num_sessions, 1, 1, 1),
        v_pages=case.v_pages.repeat(num_sessions, 1, 1, 1),
        page_table=shared.page_table + offsets,
    )
    q = make_queries(num_sessions, HEAD, BF16)

    assert torch.equal(decode(ops, q, shared), decode(ops, q, copied))


@pytest.mark.parametrize("page_size", [1, 4, 16, 24, 128])
def test_the_size_of_pages_changes_no_bit(ops: CpuOps, page_size: int) -> None:
    case = make_paged([330], HEAD, dtype=BF16)
    num_pages = -(-330 // page_size)
    padding = num_pages * page_size - 330
    paged = [
        torch.cat((dense, torch.full((padding, 3, 64), torch.nan, dtype=BF16)))
        for dense in (case.k[0], case.v[0])
    ]
    k_pages, v_pages = (pages.view(num_pages, page_size, 3, 64) for pages in paged)
    page_table = torch.arange(num_pages, dtype=torch.int32)[None]
    other = replace(case, k_pages=k_pages, v_pages=v_pages, page_table=page_table)
    q = make_queries(1, HEAD, BF16)

    assert torch.equal(decode(ops, q, other), decode(ops, q, case))


@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
def test_a_token_has_the_same_bits_prefilled_and_decoded(ops: CpuOps, heads: HeadShape) -> None:
    case = make_paged([330], heads, dtype=BF16)
    q = make_queries(330, heads, BF16)

    prefilled = prefill(ops, q, case, [330])

    positions = [0, 1, 62, 63, 64, 100, 255, 256, 329]
    seq_lens = [position + 1 for position in positions]
    decoded = decode(ops, q[positions], rows_of(case, [0] * len(positions), seq_lens))
    assert torch.equal(prefilled[positions], decoded)


@pytest.mark.parametrize("sizes", [[1] * 40, [64] * 5, [7, 100, 33, 190], [256, 64], [319, 1]])
def test_the_chunks_of_a_prefill_change_no_bit(ops: CpuOps, sizes: list[int]) -> None:
    seq_len = sum(sizes)
    case = make_paged([seq_len], HEAD, dtype=BF16)
    q = make_queries(seq_len, HEAD, BF16)

    assert torch.equal(in_chunks(ops, q, case, sizes), prefill(ops, q, case, [seq_len]))


@pytest.mark.usefixtures("one_thread_after")
def test_the_number_of_threads_changes_no_bit(ops: CpuOps) -> None:
    case = make_paged([700, 300, 20], HEAD, dtype=BF16)
    q, queries = make_queries(3, HEAD, BF16), make_queries(300, HEAD, BF16)
    num_queries = [200, 90, 10]
    ops.use_threads(1)
    decoded, prefilled = decode(ops, q, case), prefill(ops, queries, case, num_queries)

    for num_threads in (2, 5):
        ops.use_threads(num_threads)
        assert torch.equal(decode(ops, q, case), decoded)
        assert torch.equal(prefill(ops, queries, case, num_queries), prefilled)


def test_what_is_not_a_number_stays_with_those_who_see_it(ops: CpuOps) -> None:
    case = make_paged([100, 100], HEAD, dtype=BF16)
    case.k_pages[case.page_table[0, 2], 3] = torch.nan  # position 35 of the first request
    case.v_pages[case.page_table[1, 6], 3, 1, 5] = torch.nan  # position 99 of the second
    q = make_queries(2, HEAD, BF16)

    out = decode(ops, q, case)
    before = decode(ops, q, rows_of(case, [0, 1], [35, 99]))

    assert out[0].isnan().all()
    assert out[1].isnan().nonzero().tolist() == [[3, 5], [4, 5], [5, 5]]
    assert before.isfinite().all()


def test_large_scores_do_not_overflow(ops: CpuOps) -> None:
    case = make_paged([300], HEAD, dtype=BF16)
    q = make_queries(1, HEAD, BF16) * 1000

    out = decode(ops, q, case)

    assert_as_exact_as_torch(out, q, case.k[0], case.v[0], SCALE)


@st.composite
def batches(draw: st.DrawFn) -> tuple[int, HeadShape, list[tuple[int, int, int]]]:
    """Draw a page size, heads, and requests: (row of pages, KV tokens, pages of the first row)."""
    page_size = draw(st.sampled_from([1, 2, 16, 24, 80]))
    heads = HeadShape(draw(st.integers(1, 3)) * 2, 2, draw(st.sampled_from([2, 8, 34, 64])))
    request = st.tuples(st.integers(0, 2), st.integers(1, 300), st.integers(0, 300))
    return page_size, heads, draw(st.lists(request, min_size=1, max_size=6))


@given(batches())
def test_any_batch_gives_the_bits_of_its_requests_alone(
    batch: tuple[int, HeadShape, list[tuple[int, int, int]]],
) -> None:
    page_size, heads, requests = batch
    ops = cpu_ops(usable_levels()[0])
    case = make_paged([300] * 3, heads, page_size=page_size, dtype=BF16)
    shared = rows_of(case, [row for row, _, _ in requests], [length for _, length, _ in requests])
    for i, (_, _, num_shared) in enumerate(requests):
        shared.page_table[i, : num_shared // page_size] = case.page_table[
            0, : num_shared // page_size
        ]
    q = make_queries(len(requests), heads, BF16)

    together = decode(ops, q, shared)

    for i, (_, length, _) in enumerate(requests):
        alone = rows_of(shared, [i], [length])
        assert torch.equal(together[i], decode(ops, q[i : i + 1], alone)[0])
        assert torch.equal(together[i], prefill(ops, q[i : i + 1], alone, [1])[0])
    torch.testing.assert_close(together, decode(TorchOps(), q, shared), rtol=0.03, atol=0.03)
