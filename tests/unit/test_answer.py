"""From engine outputs to the numbered events of an answer."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatserve.engine.answer import Answer
from chatserve.engine.api import (
    EventKind,
    FinishReason,
    GenerationRequest,
    Outcome,
    Prefill,
    RequestId,
    RequestOutput,
    SamplingParams,
)
from chatserve.store.claim import Claim, LoggedStart
from chatserve.store.response_log import Append

ID = RequestId("resp_1")
NOTHING_LOGGED = LoggedStart()
OPENING = [EventKind.IN_PROGRESS, EventKind.ITEM_ADDED, EventKind.PART_ADDED]
CLOSING = [EventKind.TEXT_DONE, EventKind.PART_DONE, EventKind.ITEM_DONE]


def make_answer(
    *,
    next_sequence: int = 2,
    text: str = "",
    token_ids: tuple[int, ...] = (),
    start: LoggedStart = NOTHING_LOGGED,
    queued_ms: int = 5,
    timeout_ms: int | None = None,
    generates: bool = True,
) -> Answer:
    sampling = SamplingParams(max_tokens=9, seed=0)
    request = GenerationRequest(
        ID, "m", (1, 2, 3), sampling, timeout_ms=timeout_ms, generates=generates
    )
    claim = Claim(request, 1, next_sequence, token_ids, text, queued_ms, start)
    return Answer(claim, now_s=0.0)


def outcome_of(answer: Answer) -> Outcome:
    append = answer.drain()
    assert append is not None
    assert append.final is not None
    return append.final.outcome


def token(token_id: int, text: str, **fields: object) -> RequestOutput:
    return RequestOutput(ID, (token_id,), text, **fields)  # type: ignore[arg-type]


def kinds(append: Append | None) -> list[EventKind]:
    assert append is not None
    return [event.kind for event in append.events]


def test_admission_is_told_before_the_first_token() -> None:
    answer = make_answer()

    answer.take(RequestOutput(ID, admitted_cached_tokens=2), 0.1)

    append = answer.drain()
    assert append is not None
    assert kinds(append) == [EventKind.IN_PROGRESS]
    assert append.first_sequence == 2
    assert append.events[0].cached_tokens == 2


def test_the_first_text_opens_the_item_and_numbers_follow_on() -> None:
    answer = make_answer()
    answer.take(RequestOutput(ID, admitted_cached_tokens=0), 0.1)
    answer.drain()

    answer.take(token(7, "Hi"), 0.2)
    first = answer.drain()
    answer.take(token(8, " you"), 0.3)
    second = answer.drain()

    assert first is not None
    assert second is not None
    assert kinds(first) == [EventKind.ITEM_ADDED, EventKind.PART_ADDED, EventKind.DELTA]
    assert second.first_sequence == first.first_sequence + 3 == 6


def test_deltas_that_wait_grow_together_and_never_after_they_have_a_number() -> None:
    answer = make_answer()
    answer.take(token(7, "a", admitted_cached_tokens=0), 0.1)
    answer.take(token(8, "b"), 0.2)

    append = answer.drain()

    assert append is not None
    assert (append.events[-1].text, append.events[-1].token_ids) == ("ab", (7, 8))
    assert answer.drain() is None


def test_ids_without_text_wait_for_their_text() -> None:
    answer = make_answer()
    answer.take(token(7, "", admitted_cached_tokens=0), 0.1)
    assert kinds(answer.drain()) == [EventKind.IN_PROGRESS]

    answer.take(token(8, "é"), 0.2)

    append = answer.drain()
    assert append is not None
    assert append.events[-1].token_ids == (7, 8)


def test_the_end_closes_the_item_and_carries_usage_and_timings() -> None:
    answer = make_answer()
    answer.take(RequestOutput(ID, admitted_cached_tokens=2), 0.004)
    answer.take(token(7, "a"), 0.010)
    answer.take(token(8, "b"), 0.030)
    answer.take(token(9, "", finish_reason=FinishReason.STOP), 0.050)

    append = answer.drain()

    assert append is not None
    assert append.final is not None
    assert kinds(append) == [*OPENING, EventKind.DELTA, *CLOSING, EventKind.COMPLETED]
    usage, timings = append.final.outcome.usage, append.final.outcome.timings
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (3, 2, 3)
    assert (append.final.text, append.final.token_ids) == ("ab", (7, 8, 9))
    assert usage.cache_write_tokens == 1
    assert (timings.queue_ms, timings.prefill_ms) == (9.0, 6.0)
    assert (timings.ttft_ms, timings.itl_p50_ms) == (15.0, 20.0)


def test_an_empty_answer_still_gets_its_empty_message() -> None:
    answer = make_answer()

    answer.take(token(2, "", admitted_cached_tokens=0, finish_reason=FinishReason.STOP), 0.1)

    assert kinds(answer.drain()) == [*OPENING, *CLOSING, EventKind.COMPLETED]


def test_a_cancel_before_the_first_token_goes_straight_to_the_end() -> None:
    answer = make_answer()

    answer.finish(FinishReason.ABORT)
    answer.take(token(7, "late"), 0.1)

    append = answer.drain()
    assert kinds(append) == [EventKind.INCOMPLETE]
    assert append is not None
    assert append.final is not None
    assert append.final.text == ""


def test_a_cancel_in_the_middle_keeps_what_was_said() -> None:
    answer = make_answer()
    answer.take(token(7, "Hi", admitted_cached_tokens=0), 0.1)

    answer.finish(FinishReason.ABORT)

    append = answer.drain()
    assert append is not None
    assert append.final is not None
    assert kinds(append)[-4:] == [*CLOSING, EventKind.INCOMPLETE]
    assert append.final.text == "Hi"


def test_a_take_over_goes_on_where_the_log_ends() -> None:
    answer = make_answer(next_sequence=6, text="Hi", token_ids=(7,))

    answer.take(token(8, " you", admitted_cached_tokens=3), 0.1)
    answer.take(token(2, "", finish_reason=FinishReason.STOP), 0.2)

    append = answer.drain()
    assert append is not None
    assert append.final is not None
    assert kinds(append) == [EventKind.DELTA, *CLOSING, EventKind.COMPLETED]
    assert append.first_sequence == 6
    assert (append.final.text, append.final.token_ids) == ("Hi you", (7, 8, 2))


def test_a_take_over_in_the_middle_of_the_opening_completes_it() -> None:
    answer = make_answer(next_sequence=3)

    answer.take(token(8, "x", admitted_cached_tokens=0), 0.1)

    assert kinds(answer.drain()) == [EventKind.ITEM_ADDED, EventKind.PART_ADDED, EventKind.DELTA]


def test_an_error_says_what_happened() -> None:
    answer = make_answer()

    answer.take(RequestOutput(ID, finish_reason=FinishReason.ERROR, error_message="why"), 0.1)

    append = answer.drain()
    assert append is not None
    assert append.final is not None
    assert kinds(append) == [EventKind.FAILED]
    assert append.final.outcome.error_message == "why"


def test_nothing_is_written_to_the_cache_by_an_answer_that_never_began() -> None:
    answer = make_answer()
    answer.take(RequestOutput(ID, admitted_cached_tokens=0), 0.1)

    answer.finish(FinishReason.ABORT)

    append = answer.drain()
    assert append is not None
    assert append.final is not None
    assert append.final.outcome.usage.cache_write_tokens == 0


def test_the_deadline_counts_the_time_in_the_queue() -> None:
    assert make_answer(timeout_ms=1005).deadline_s == 1.0
    assert make_answer().deadline_s is None


def test_an_answer_whose_time_is_over_fails_with_the_sizes_and_keeps_its_text() -> None:
    answer = make_answer(timeout_ms=1500)
    answer.take(token(7, "Hi", admitted_cached_tokens=0), 0.1)

    answer.exceed_deadline(1.595)
    answer.take(token(8, " late"), 1.6)
    answer.exceed_deadline(2.0)

    append = answer.drain()
    assert append is not None
    assert append.final is not None
    assert kinds(append) == [*OPENING, EventKind.DELTA, *CLOSING, EventKind.FAILED]
    assert (append.final.text, append.final.outcome.error_code) == ("Hi", "deadline_exceeded")
    assert append.final.outcome.error_message == (
        "the answer was not complete 1.6 s after its request was queued, its timeout is 1.5 s"
    )
    assert answer.drain() is None


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.STOP])
def test_warm_up_completes_without_a_token_and_says_what_it_computed(reason: FinishReason) -> None:
    answer = make_answer(generates=False)

    answer.take(token(7, "Hi", admitted_cached_tokens=1, finish_reason=reason), 0.1)

    append = answer.drain()
    assert append is not None
    assert append.final is not None
    assert kinds(append) == [EventKind.IN_PROGRESS, EventKind.COMPLETED]
    assert (append.final.text, append.final.token_ids) == ("", ())
    usage = append.final.outcome.usage
    assert (usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens) == (1, 2, 0)


def test_stages_are_told_when_they_are_reached() -> None:
    answer = make_answer()
    answer.take(RequestOutput(ID, admitted_cached_tokens=2), 0.004)
    answer.take(token(7, "a"), 0.010)
    answer.take(token(8, "b"), 0.030)
    first = answer.drain()
    answer.take(token(9, "c"), 0.040)
    second = answer.drain()

    assert first is not None
    assert second is not None
    assert first.events[0].queue_ms == 9.0
    assert first.events[-1].ttft_ms == 15.0
    assert [event.ttft_ms for event in second.events] == [None]


def test_take_over_keeps_what_the_reader_was_told_and_counts_its_pause() -> None:
    """It used to begin anew: a queue of 31 s, no time to the first token, nothing cached."""
    start = LoggedStart(cached_tokens=2, queue_ms=9.0, ttft_ms=15.0)
    answer = make_answer(next_sequence=6, text="Hi", token_ids=(7,), start=start, queued_ms=10_000)

    answer.take(RequestOutput(ID, admitted_cached_tokens=0), 0.0)
    answer.take(token(8, " you"), 0.005)
    answer.take(token(2, "", finish_reason=FinishReason.STOP), 0.015)

    outcome = outcome_of(answer)
    timings, usage = outcome.timings, outcome.usage
    assert (timings.queue_ms, timings.prefill_ms, timings.ttft_ms) == (9.0, 6.0, 15.0)
    assert timings.tok_s == 0.2  # two more tokens in ten seconds
    assert timings.itl_p50_ms == 10.0
    assert (usage.cached_tokens, usage.cache_write_tokens) == (2, 1)


def test_first_token_of_a_worker_that_takes_over_before_it_counts_from_the_queue() -> None:
    start = LoggedStart(cached_tokens=2, queue_ms=9.0)
    answer = make_answer(next_sequence=3, start=start, queued_ms=10_000)

    answer.take(RequestOutput(ID, admitted_cached_tokens=0), 0.0)
    answer.take(token(2, "x", finish_reason=FinishReason.STOP), 0.005)

    timings = outcome_of(answer).timings
    assert (timings.queue_ms, timings.ttft_ms) == (9.0, 10_005.0)


moments = st.floats(min_value=-5, max_value=60, allow_nan=False)


@given(
    queued_ms=st.integers(min_value=0, max_value=100_000),
    start=st.sampled_from([LoggedStart(), LoggedStart(2, 700.25), LoggedStart(2, 700.25, 1300.5)]),
    admissions=st.lists(moments, min_size=1, max_size=3),
    tokens=st.lists(moments, min_size=1, max_size=6),
)
def test_first_token_comes_after_queue_and_prefill_whatever_clocks_say(
    queued_ms: int, start: LoggedStart, admissions: Sequence[float], tokens: Sequence[float]
) -> None:
    token_ids = (7,) if start.ttft_ms is not None else ()
    answer = make_answer(next_sequence=6, token_ids=token_ids, start=start, queued_ms=queued_ms)

    for now_s in admissions:  # again after a preemption
        answer.take(RequestOutput(ID, admitted_cached_tokens=0), now_s)
    for now_s in tokens:
        answer.take(token(7, "a"), now_s)
    append = answer.drain()
    answer.finish(FinishReason.STOP)

    timings = outcome_of(answer).timings
    assert timings.queue_ms is not None
    assert timings.prefill_ms is not None
    assert timings.ttft_ms is not None
    assert timings.prefill_ms >= 0
    assert timings.ttft_ms == pytest.approx(timings.queue_ms + timings.prefill_ms, abs=0.01)
    assert start.ttft_ms in (None, timings.ttft_ms)
    assert start.queue_ms in (None, timings.queue_ms)
    assert append is not None
    told = [event.ttft_ms for event in append.events if event.ttft_ms is not None]
    assert told == ([timings.ttft_ms] if start.ttft_ms is None else [])
    assert timings.tok_s is None or timings.tok_s > 0


def test_prefill_is_known_from_its_first_step_to_its_last() -> None:
    answer = make_answer()
    answer.take(RequestOutput(ID, admitted_cached_tokens=1), 0.0)
    seen = [answer.prefill]
    answer.take(RequestOutput(ID, num_computed_tokens=2), 0.1)
    seen.append(answer.prefill)
    answer.take(token(7, "a"), 0.2)
    seen.append(answer.prefill)

    assert seen == [None, Prefill(1, 1, 3), None]


def test_what_there_is_of_an_answer_counts_as_prompt_where_it_is_computed_again() -> None:
    start = LoggedStart(cached_tokens=2, queue_ms=9.0, ttft_ms=15.0)
    answer = make_answer(next_sequence=6, text="Hi", token_ids=(7,), start=start)
    answer.take(RequestOutput(ID, admitted_cached_tokens=0), 0.0)

    answer.take(RequestOutput(ID, num_computed_tokens=2), 0.1)

    assert answer.prefill == Prefill(cached_tokens=0, computed_tokens=2, total_tokens=4)
