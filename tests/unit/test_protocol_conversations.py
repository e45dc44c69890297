"""Bodies and items of the conversations surface."""

from typing import Any

import orjson
import pytest
from openai.types.conversations import ConversationItem
from pydantic import TypeAdapter

from chatserve.engine.api import FinishReason, Outcome, Usage
from chatserve.errors import InvalidRequest
from chatserve.protocol.conversations import (
    StoredItem,
    parse_conversation_change,
    parse_new_conversation,
)

official_item: TypeAdapter[Any] = TypeAdapter(ConversationItem)


def answer_item(reason: FinishReason) -> dict[str, Any]:
    outcome = Outcome(reason, Usage(3, 1, 2), error_code="worker_lost", error_message="it broke")
    return StoredItem("msg_2", "assistant", "Hello", "resp_1", outcome).to_wire()


def test_empty_body_makes_an_empty_conversation() -> None:
    new, ignored = parse_new_conversation(b"")

    assert (new.items, new.metadata, new.title, ignored) == ([], {}, "", ())


def test_items_and_metadata_are_taken_and_unknown_names_reported() -> None:
    body = {
        "items": [{"type": "message", "role": "system", "content": "Be brief."}],
        "metadata": {"a": "b"},
        "colour": "red",
    }

    new, ignored = parse_new_conversation(orjson.dumps(body))

    assert new.items[0].text == "Be brief."
    assert new.metadata == {"a": "b"}
    assert ignored == ("colour",)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"items": [{"role": "user", "content": "x"}] * 21}, "items"),
        ({"items": "x"}, "items"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"title": "x" * 201}, "title"),
    ],
)
def test_wrong_creation_is_refused_by_name(body: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_new_conversation(orjson.dumps(body))

    assert caught.value.param == param


def test_change_leaves_out_what_it_does_not_name() -> None:
    change, _ = parse_conversation_change(b'{"title": "New"}')

    assert (change.title, change.metadata) == ("New", None)


def test_items_validate_against_the_official_type() -> None:
    said = StoredItem("msg_1", "user", "Hi", None, None).to_wire()

    for item in (said, answer_item(FinishReason.STOP), answer_item(FinishReason.ERROR)):
        assert official_item.validate_python(item).id == item["id"]


@pytest.mark.parametrize(
    ("reason", "status", "incomplete_reason", "has_error"),
    [
        (FinishReason.STOP, "completed", None, False),
        (FinishReason.LENGTH, "incomplete", "max_output_tokens", False),
        (FinishReason.ABORT, "incomplete", "chatserve:cancelled", False),
        (FinishReason.ERROR, "incomplete", None, True),
    ],
)
def test_item_of_an_answer_tells_how_it_ended(
    reason: FinishReason, status: str, incomplete_reason: str | None, has_error: bool
) -> None:
    item = answer_item(reason)

    assert item["status"] == status
    assert item["chatserve:incomplete_reason"] == incomplete_reason
    assert (item["chatserve:error"] is not None) is has_error
    assert item["chatserve:usage"]["input_tokens_details"]["cached_tokens"] == 1
