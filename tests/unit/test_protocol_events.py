"""The events of an answer, projected from its log and checked against the official types."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses.response import Response
from openai.types.responses.responses_server_event import ResponsesServerEvent
from pydantic import TypeAdapter, ValidationError

from chatserve.engine.api import EventKind, FinishReason, LogEvent, Outcome, Timings, Usage
from chatserve.protocol.events import (
    ResponseHead,
    ResponseProjector,
    final_response,
    gap_events,
)

HEAD = ResponseHead(
    response_id="resp_1",
    message_id="msg_1",
    model="m",
    created_at=1_700_000_000,
    echo={"temperature": 0.5, "metadata": {"k": "v"}, "instructions": "Be brief."},
    ignored=("colour",),
)
USAGE = Usage(input_tokens=10, cached_tokens=4, cache_write_tokens=6, output_tokens=3)
TIMINGS = Timings(queue_ms=1.0, prefill_ms=2.0, ttft_ms=3.0, itl_p50_ms=4.0, tok_s=5.0)

server_event: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)


def log_of(
    *deltas: str, reason: FinishReason = FinishReason.STOP, error: str | None = None
) -> list[LogEvent]:
    outcome = Outcome(reason, USAGE, TIMINGS, error and "worker_lost", error)
    return [
        LogEvent(EventKind.CREATED),
        LogEvent(EventKind.QUEUED),
        LogEvent(EventKind.IN_PROGRESS, cached_tokens=4),
        LogEvent(EventKind.ITEM_ADDED),
        LogEvent(EventKind.PART_ADDED),
        *(LogEvent(EventKind.DELTA, text, (1,)) for text in deltas),
        LogEvent(EventKind.TEXT_DONE),
        LogEvent(EventKind.PART_DONE),
        LogEvent(EventKind.ITEM_DONE, outcome=outcome),
        LogEvent(outcome.terminal_kind, outcome=outcome),
    ]


def project(log: list[LogEvent]) -> list[dict[str, Any]]:
    projector = ResponseProjector(HEAD)
    return [projector.project(number, event) for number, event in enumerate(log)]


@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH, FinishReason.ERROR])
def test_every_event_validates_against_the_official_types(reason: FinishReason) -> None:
    events = project(log_of("Hel", "lo", reason=reason, error="it broke"))

    for event in events:
        assert server_event.validate_python(event).type == event["type"]


def test_a_cancelled_answer_differs_from_the_official_types_only_in_its_reason() -> None:
    event = project(log_of("Hel", reason=FinishReason.ABORT))[-1]

    with pytest.raises(ValidationError) as caught:
        Response.model_validate(event["response"])

    assert [finding["loc"] for finding in caught.value.errors()] == [
        ("incomplete_details", "reason")
    ]
    assert event["response"]["incomplete_details"] == {"reason": "chatserve:cancelled"}


def test_numbers_and_types_are_those_of_the_log() -> None:
    log = log_of("a")

    events = project(log)

    assert [(e["sequence_number"], e["type"]) for e in events] == [
        (number, event.kind.value) for number, event in enumerate(log)
    ]


def test_done_events_carry_the_whole_text() -> None:
    events = {event["type"]: event for event in project(log_of("Hel", "", "lo"))}

    assert events["response.output_text.done"]["text"] == "Hello"
    assert events["response.content_part.done"]["part"]["text"] == "Hello"
    assert events["response.output_item.done"]["item"]["content"][0]["text"] == "Hello"
    assert events["response.content_part.added"]["part"]["text"] == ""
    assert events["response.output_item.added"]["item"]["content"] == []


@given(st.lists(st.text(), max_size=8))
def test_text_is_the_same_however_it_was_cut(deltas: list[str]) -> None:
    events = project(log_of(*deltas))

    whole = project(log_of("".join(deltas)))
    assert events[-1]["response"]["output"] == whole[-1]["response"]["output"]
    assert "".join(e.get("delta", "") for e in events) == "".join(deltas)


def test_cached_tokens_are_told_at_the_start_and_in_the_usage() -> None:
    events = project(log_of("a"))

    assert events[2]["chatserve:cached_tokens"] == 4
    assert events[-1]["response"]["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 6},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 13,
    }


def test_timings_stand_in_the_final_response() -> None:
    response = project(log_of("a"))[-1]["response"]

    assert response["chatserve:timings"] == {
        "queue_ms": 1.0,
        "prefill_ms": 2.0,
        "ttft_ms": 3.0,
        "itl_p50_ms": 4.0,
        "tok_s": 5.0,
    }


@pytest.mark.parametrize(
    ("reason", "status", "details", "item_status"),
    [
        (FinishReason.STOP, "completed", None, "completed"),
        (FinishReason.LENGTH, "incomplete", {"reason": "max_output_tokens"}, "incomplete"),
        (FinishReason.ABORT, "incomplete", {"reason": "chatserve:cancelled"}, "incomplete"),
        (FinishReason.ERROR, "failed", None, "incomplete"),
    ],
)
def test_the_end_tells_how_it_came(
    reason: FinishReason, status: str, details: Any, item_status: str
) -> None:
    response = project(log_of("a", reason=reason))[-1]["response"]

    assert response["status"] == status
    assert response["incomplete_details"] == details
    assert response["output"][0]["status"] == item_status


def test_failure_has_the_official_code_and_ours() -> None:
    response = project(log_of("a", reason=FinishReason.ERROR, error="it broke"))[-1]["response"]

    assert response["error"] == {
        "code": "server_error",
        "message": "it broke",
        "chatserve:code": "worker_lost",
    }


def test_answer_that_never_began_has_no_output() -> None:
    outcome = Outcome(FinishReason.ABORT, Usage(input_tokens=10))
    log = [*log_of()[:2], LogEvent(EventKind.INCOMPLETE, outcome=outcome)]

    response = project(log)[-1]["response"]

    assert response["output"] == []


def test_request_is_echoed_and_ignored_names_are_told_once() -> None:
    created, *later = project(log_of("a"))

    assert created["response"]["temperature"] == 0.5
    assert created["chatserve:ignored"] == ["colour"]
    assert not any("chatserve:ignored" in event for event in later)


def test_nothing_is_said_of_ignored_names_where_there_are_none() -> None:
    head = ResponseHead("resp_1", "msg_1", "m", 1)

    event = ResponseProjector(head).project(0, LogEvent(EventKind.CREATED))

    assert "chatserve:ignored" not in event


def test_terminal_event_follows_on_the_snapshot_of_a_gap() -> None:
    outcome = Outcome(FinishReason.STOP, USAGE, TIMINGS)

    gap, terminal = gap_events(HEAD, "Hello", outcome, starting_after=7, last_sequence=12)

    assert (gap["from"], gap["to"], gap["snapshot"]) == (8, 11, "Hello")
    assert terminal["sequence_number"] == 12
    assert terminal["response"]["output"][0]["content"][0]["text"] == "Hello"
    server_event.validate_python(terminal)


@pytest.mark.parametrize("starting_after", [11, 12])
def test_reader_who_misses_no_event_between_gets_no_gap(starting_after: int) -> None:
    outcome = Outcome(FinishReason.STOP, USAGE, TIMINGS)

    events = gap_events(HEAD, "Hi", outcome, starting_after=starting_after, last_sequence=12)

    assert [event["type"] for event in events] == ["response.completed"]


@pytest.mark.parametrize("reason", list(FinishReason))
@pytest.mark.parametrize("texts", [(), ("Hel", "lo")])
def test_object_without_its_log_is_the_one_that_the_log_told(
    reason: FinishReason, texts: tuple[str, ...]
) -> None:
    log = log_of(*texts, reason=reason)
    outcome = log[-1].outcome
    assert outcome is not None
    is_cut_short = not texts and reason in (FinishReason.ABORT, FinishReason.ERROR)
    if is_cut_short:  # it ends before it has an item
        log = [*log[:3], log[-1]]

    *_, terminal = project(log)

    assert final_response(HEAD, "".join(texts), outcome) == terminal["response"]


def test_object_in_flight_has_the_text_so_far() -> None:
    projector = ResponseProjector(HEAD)
    queued = projector.response_so_far()
    for number, event in enumerate(log_of("Hel", "lo")[:6]):
        projector.project(number, event)

    running = projector.response_so_far()

    assert (queued["status"], queued["output"]) == ("queued", [])
    assert running["status"] == "in_progress"
    assert running["output"][0]["content"][0]["text"] == "Hel"
    assert running["output"][0]["status"] == "in_progress"


@pytest.mark.parametrize(
    ("reason", "status"),
    [(FinishReason.STOP, "completed"), (FinishReason.LENGTH, "incomplete")],
)
def test_the_items_own_last_event_tells_how_it_ended(reason: FinishReason, status: str) -> None:
    *_, item_done, terminal = project(log_of("a", reason=reason))

    assert item_done["item"]["status"] == status
    assert item_done["item"] == terminal["response"]["output"][0]
