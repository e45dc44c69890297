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
    Choice,
    TextShape,
    completion_usage,
    finish_reason,
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
    chunks = [chunk for event in events if (chunk := writer.chunk(0, event))]
    return [*chunks, writer.usage_chunk([USAGE])] if include_usage else chunks


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
    answer = AnswerWriter(HEAD, ChatShape()).whole([Choice("Hello", "length", USAGE)])

    parsed = ChatCompletion.model_validate(answer)
    assert parsed.choices[0].message.content == "Hello"
    assert parsed.choices[0].finish_reason == "length"
    assert parsed.usage is not None
    assert parsed.usage.total_tokens == 13


def test_text_answers_validate_against_the_official_type_in_both_forms() -> None:
    whole = AnswerWriter(HEAD, TextShape()).whole([Choice("Hello", "stop", USAGE)])

    assert Completion.model_validate(whole).choices[0].text == "Hello"
    # The official type of a chunk has no null finish reason; the endpoint it describes sends one.
    assert [chunk["choices"][0]["text"] for chunk in stream(TextShape(), "a", "b")] == [
        "a",
        "b",
        "",
    ]


@pytest.mark.parametrize("shape", [ChatShape(), TextShape()])
def test_every_chunk_of_a_choice_has_its_index(shape: AnswerShape) -> None:
    writer = AnswerWriter(HEAD, shape)
    events = [LogEvent(EventKind.DELTA, "a"), LogEvent(EventKind.COMPLETED, outcome=outcome())]

    chunks = [writer.chunk(2, event) for event in events]

    assert [chunk and chunk["choices"][0]["index"] for chunk in chunks] == [2, 2]


def test_whole_choices_are_numbered_in_their_order() -> None:
    choices = [Choice("a", "stop", USAGE), Choice("b", "length", USAGE)]

    answer = ChatCompletion.model_validate(AnswerWriter(HEAD, ChatShape()).whole(choices))

    assert [(c.index, c.message.content, c.finish_reason) for c in answer.choices] == [
        (0, "a", "stop"),
        (1, "b", "length"),
    ]


def test_usage_counts_the_prompt_once_and_as_cached_what_no_choice_computed() -> None:
    usage = completion_usage(
        [
            Usage(input_tokens=10, cached_tokens=9, output_tokens=3),
            Usage(input_tokens=10, cached_tokens=4, output_tokens=5),
        ]
    )

    assert usage == {
        "prompt_tokens": 10,
        "completion_tokens": 8,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
    }


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
        finish_reason(ending)
    with pytest.raises(AnswerFailed):
        writer.chunk(0, LogEvent(ending.terminal_kind, outcome=ending))

    assert (caught.value.code, caught.value.status) == (code, 500)


def test_answer_whose_time_was_over_is_a_timeout_of_the_gateway() -> None:
    late = Outcome(FinishReason.ERROR, USAGE, error_code="deadline_exceeded", error_message="late")

    with pytest.raises(AnswerFailed, match="late") as caught:
        finish_reason(late)

    assert (caught.value.code, caught.value.status) == ("deadline_exceeded", 504)
