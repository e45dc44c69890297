"""Bodies that take long to look at for their size: refused, and before anything is made of them."""

from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from chatserve.errors import InvalidRequest
from chatserve.protocol import body as body_module
from chatserve.protocol.body import MAX_NAMES, MAX_VALUES, Body, parse_object
from chatserve.protocol.client_events import BadEvent, parse_client_event
from chatserve.protocol.conversation_archive import (
    MAX_ITEMS,
    MAX_ITEMS_IN_ALL,
    archive_head,
    parse_archive,
)
from chatserve.protocol.errors import invalid_request
from chatserve.protocol.messages import MAX_MESSAGES
from chatserve.protocol.responses import parse_response_request
from chatserve.protocol.tokenize import MAX_TOKENS, parse_detokenize_request

CREATE = {"model": "m", "input": "Hi"}


def names(number: int) -> dict[str, int]:
    return {f"n{index}": index for index in range(number)}


def test_body_of_too_many_names_is_refused_with_their_number() -> None:
    parse_response_request(orjson.dumps({**CREATE, **names(MAX_NAMES - len(CREATE))}))

    with pytest.raises(InvalidRequest, match=f"{MAX_NAMES + 1} names, the limit is {MAX_NAMES}"):
        Body(names(MAX_NAMES + 1))


def test_frame_of_too_many_names_makes_no_sense() -> None:
    frame = orjson.dumps({"type": "response.create", **CREATE, **names(MAX_NAMES)}).decode()

    assert isinstance(parse_client_event(frame), BadEvent)


@pytest.mark.parametrize(
    "value",
    [
        [[]] * MAX_VALUES,
        [{}] * MAX_VALUES,
        names(MAX_VALUES),
        [[None, [names(8)]]] * (MAX_VALUES // 8),
    ],
)
def test_too_many_values_are_refused_before_any_is_made(
    monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    raw = orjson.dumps({**CREATE, "unknown": value})
    monkeypatch.setattr(orjson, "loads", None)

    with pytest.raises(InvalidRequest, match=f"more than {MAX_VALUES} objects, lists and names"):
        parse_response_request(raw)


@pytest.mark.parametrize("text", ["[{:" * MAX_VALUES, '\\"[' * MAX_VALUES, '":{"' * MAX_VALUES])
def test_what_a_text_says_is_one_value(text: str) -> None:
    request = parse_response_request(orjson.dumps({**CREATE, "input": text}))

    assert request.fields.input[0].text == text


def test_string_without_an_end_is_read_over_once() -> None:
    unended = b'{"' + rb"\"[" * 200_000

    with pytest.raises(InvalidRequest, match="not valid JSON"):
        parse_object(unended)


def test_as_many_messages_and_items_as_there_may_be_have_room() -> None:
    part = {"type": "input_text", "text": "a", "annotations": []}
    said = [{"type": "message", "role": "user", "content": [part]}] * MAX_MESSAGES
    item = {"role": "user", "text": "a", "created_at": 1, "status": "completed", "parent_id": None}
    conversations = [
        {
            "id": str(first),
            "title": "",
            "created_at": 1,
            "updated_at": 1,
            "items": [{"id": str(place), **item} for place in range(MAX_ITEMS)],
        }
        for first in range(0, MAX_ITEMS_IN_ALL, MAX_ITEMS)
    ]

    request = parse_response_request(orjson.dumps({**CREATE, "input": said}))
    archive = parse_archive(orjson.dumps({**archive_head(), "conversations": conversations}))

    assert len(request.fields.input) == MAX_MESSAGES
    assert len(archive.conversations) == MAX_ITEMS_IN_ALL // MAX_ITEMS


@pytest.mark.parametrize(
    "field", [{"metadata": names(10_000)}, {"prompt": {"id": "p", "variables": names(10_000)}}]
)
def test_object_of_too_many_members_is_refused_without_a_look_at_them(field: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"dictionary should have at most .* not 10000"):
        parse_response_request(orjson.dumps({**CREATE, **field}))


def test_first_bad_token_ends_the_look_at_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[ValidationError] = []

    def record(failure: ValidationError) -> InvalidRequest:
        failures.append(failure)
        return invalid_request(failure)

    monkeypatch.setattr(body_module, "invalid_request", record)

    with pytest.raises(InvalidRequest) as refusal:
        parse_detokenize_request(orjson.dumps({"model": "m", "tokens": ["a"] * MAX_TOKENS}))

    assert refusal.value.param == "tokens[0]"
    assert [failure.error_count() for failure in failures] == [1]
