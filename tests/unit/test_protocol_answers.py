"""Answers of the completion surfaces, checked against the official types."""

from typing import Any

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from chatserve.engine.api import EventKind, FinishReason, LogEvent, Outcome, Usage
from chatserve.errors import AnswerFailed
from chatserve.protocol.completion_answers import (
    AnswerHead,
    AnswerShape,
    AnswerWriter,
    ChatShape,
    TextShape,
)

HEAD = AnswerHead("chatcmpl-1", "m", 1_700_000_000)
USAGE = Usage(input_tokens=10, cached_tokens=4, output_tokens=3)


def outcome(reason: FinishReason = FinishReason.STOP, error: str | None = None) -> Outcome:
    return Outcome(reason, USAGE, error_code=error and "worker_lost", error_message=error)


def stream(shape: AnswerShape, *deltas: str, include_usage: bool = False) -> list[dict[str, Any]]:
    writer = AnswerWriter(HEAD, shape, include_usage)
    events = [
        LogEvent(EventKind.CREATED),
        LogEvent(EventKind.IN_PROGRESS),
        *(LogEvent(EventKind.DELTA, text) for text in deltas),
        LogEvent(EventKind.ITEM_DONE, outcome=outcome()),
        LogEvent(EventKind.COMPLETED, outcome=outcome()),
    ]
    return [chunk for event in events for chunk in writer.chunks(event)]


def test_chat_chunks_validate_against_the_official_type() -> None:
    for chunk in stream(ChatShape(), "Hel", "lo", include_usage=True):
        ChatCompletionChunk.model_validate(chunk)


def test_first_chat_chunk_has_the_role_and_no_text() -> None:
    first = stream(ChatShape(), "Hi")[0]

    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize("shape", [ChatShape(), TextShape()])
def test_finish_reason_is_null_until_the_last_choice(shape: AnswerShape) -> None:
    chunks = stream(shape, "Hel", "lo")

    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons[-1] == "stop"
    assert set(reasons[:-1]) == {None}


def test_delta_without_text_makes_no_chunk() -> None:
    assert stream(ChatShape(), "", "Hi", "") == stream(ChatShape(), "Hi")


def test_usage_comes_last_with_no_choices_and_only_when_asked_for() -> None:
    chunks = stream(ChatShape(), "Hi", include_usage=True)

    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert not any("usage" in chunk for chunk in stream(ChatShape(), "Hi"))


def test_whole_chat_answer_validates_against_the_official_type() -> None:
    answer = AnswerWriter(HEAD, ChatShape()).whole("Hello", outcome(FinishReason.LENGTH))

    parsed = ChatCompletion.model_validate(answer)
    assert parsed.choices[0].message.content == "Hello"
    assert parsed.choices[0].finish_reason == "length"
    assert parsed.usage is not None
    assert parsed.usage.total_tokens == 13


def test_text_answers_validate_against_the_official_type_in_both_forms() -> None:
    whole = AnswerWriter(HEAD, TextShape()).whole("Hello", outcome())

    assert Completion.model_validate(whole).choices[0].text == "Hello"
    # The official type of a chunk has no null finish reason; the endpoint it describes sends one.
    assert [chunk["choices"][0]["text"] for chunk in stream(TextShape(), "a", "b")] == [
        "a",
        "b",
        "",
    ]


@pytest.mark.parametrize(
    ("ending", "code", "message"),
    [
        (outcome(FinishReason.ABORT), "cancelled", "cancelled"),
        (outcome(FinishReason.ERROR, "it broke"), "worker_lost", "it broke"),
        (outcome(FinishReason.ERROR), "server_error", "failed"),
    ],
)
def test_answer_that_did_not_end_well_is_an_error(ending: Outcome, code: str, message: str) -> None:
    writer = AnswerWriter(HEAD, ChatShape())

    with pytest.raises(AnswerFailed, match=message) as caught:
        writer.whole("Hel", ending)
    with pytest.raises(AnswerFailed):
        writer.chunks(LogEvent(ending.terminal_kind, outcome=ending))

    assert (caught.value.code, caught.value.status) == (code, 500)


def test_answer_whose_time_was_over_is_a_timeout_of_the_gateway() -> None:
    late = Outcome(FinishReason.ERROR, USAGE, error_code="deadline_exceeded", error_message="late")

    with pytest.raises(AnswerFailed, match="late") as caught:
        AnswerWriter(HEAD, ChatShape()).whole("Hel", late)

    assert (caught.value.code, caught.value.status) == ("deadline_exceeded", 504)
