"""The tensors of a step, against the same numbers worked out token by token."""

import torch

from chatserve.cache.page_allocator import PageId
from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.forward_batch import ForwardBatch
from chatserve.engine.request import Request
from chatserve.engine.scheduler import ScheduledRequest

PAGE_SIZE = 4


def run(start: int, token_ids: list[int], pages: list[int], *, samples: bool) -> ScheduledRequest:
    sampling = SamplingParams(max_tokens=1, seed=0)
    request = Request.create(GenerationRequest(RequestId("r"), "m", tuple(token_ids), sampling))
    return ScheduledRequest(request, start, token_ids, [PageId(p) for p in pages], samples)


def build(*runs: ScheduledRequest) -> ForwardBatch:
    return ForwardBatch.build(runs, PAGE_SIZE, "cpu")


def test_decodes_come_before_prefills_whatever_the_order_of_the_schedule() -> None:
    prefill = run(2, [7, 8, 9], [5, 3], samples=True)
    decode = run(9, [4], [1, 0, 6], samples=True)

    batch = build(prefill, decode)

    assert batch.input_ids.tolist() == [4, 7, 8, 9]
    assert batch.positions.tolist() == [9, 2, 3, 4]
    assert batch.attention.num_decodes == 1
    assert batch.sampling_runs == [decode, prefill]
    assert batch.logits_rows.tolist() == [0, 3]


def test_a_slot_is_the_page_of_a_position_and_its_place_in_it() -> None:
    prefill = run(2, [7, 8, 9], [5, 3], samples=True)
    decode = run(9, [4], [1, 0, 6], samples=True)

    slots = build(prefill, decode).attention.slot_mapping

    assert slots.tolist() == [6 * 4 + 1, 5 * 4 + 2, 5 * 4 + 3, 3 * 4 + 0]


def test_each_kind_has_its_own_page_table_padded_with_page_0() -> None:
    decodes = [run(0, [1], [9], samples=True), run(8, [1], [2, 3, 4], samples=True)]
    prefill = run(0, [1, 2], [7], samples=True)

    attention = build(*decodes, prefill).attention

    assert attention.decode_page_table.tolist() == [[9, 0, 0], [2, 3, 4]]
    assert attention.decode_seq_lens.tolist() == [1, 9]
    assert attention.prefill_page_table.tolist() == [[7]]
    assert attention.prefill_seq_lens.tolist() == [2]


def test_query_lengths_of_prefills_are_cumulative() -> None:
    prefills = [run(0, [1] * length, [2, 3], samples=False) for length in (3, 2, 5)]

    attention = build(*prefills).attention

    assert attention.cu_seqlens_q.tolist() == [0, 3, 5, 10]


def test_a_run_that_does_not_reach_the_last_token_has_no_logits() -> None:
    batch = build(run(0, [1, 2], [0], samples=False), run(5, [3, 4], [1, 2], samples=True))

    assert batch.logits_rows.tolist() == [3]


def test_a_step_of_one_kind_has_empty_tensors_for_the_other() -> None:
    only_decodes = build(run(0, [1], [0], samples=True)).attention
    only_prefills = build(run(0, [1, 2], [0], samples=True)).attention

    assert only_decodes.prefill_page_table.shape == (0, 0)
    assert only_decodes.cu_seqlens_q.tolist() == [0]
    assert only_prefills.decode_page_table.shape == (0, 0)
    assert only_prefills.decode_seq_lens.shape == (0,)


def test_tensors_have_the_dtypes_of_the_contract() -> None:
    batch = build(run(0, [1], [0], samples=True), run(0, [1, 2], [0], samples=True))

    attention = batch.attention
    long = (batch.input_ids, batch.positions, batch.logits_rows, attention.slot_mapping)
    short = (
        *(attention.decode_page_table, attention.decode_seq_lens),
        *(attention.prefill_page_table, attention.prefill_seq_lens, attention.cu_seqlens_q),
    )
    assert {tensor.dtype for tensor in long} == {torch.int64}
    assert {tensor.dtype for tensor in short} == {torch.int32}
