"""Bodies and items of the conversations surface."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from openai.types.conversations import ConversationItem
from pydantic import TypeAdapter

from chatserve.engine.api import FinishReason, Outcome, RequestId, Usage
from chatserve.errors import InvalidRequest
from chatserve.gateway.conversation_items import item_object
from chatserve.protocol.body import Body, parse_object
from chatserve.protocol.conversation_archive import (
    MAX_ITEMS,
    MAX_ITEMS_IN_ALL,
    archive_head,
    parse_archive,
)
from chatserve.protocol.conversations import ConversationChange, NewConversation
from chatserve.store.sessions import Message, MessageStatus

official_item: TypeAdapter[Any] = TypeAdapter(ConversationItem)


def answer_item(reason: FinishReason) -> dict[str, Any]:
    outcome = Outcome(reason, Usage(3, 1, 2), error_code="worker_lost", error_message="it broke")
    status = MessageStatus.FAILED if reason is FinishReason.ERROR else MessageStatus.COMPLETED
    message = Message("msg_2", "assistant", "Hello", 1, RequestId("resp_1"), status)
    return item_object(replace(message, outcome=outcome)).to_wire()


def parse(body: Any) -> tuple[NewConversation, tuple[str, ...]]:
    fields = Body(parse_object(orjson.dumps(body)))
    return fields.take(NewConversation), fields.ignored()


def test_empty_body_makes_an_empty_conversation() -> None:
    new, ignored = parse({})

    assert (new.items, new.metadata, new.title, ignored) == ([], {}, "", ())


def test_items_and_metadata_are_taken_and_unknown_names_reported() -> None:
    body = {
        "items": [{"type": "message", "role": "system", "content": "Be brief."}],
        "metadata": {"a": "b"},
        "colour": "red",
    }

    new, ignored = parse(body)

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
        parse(body)

    assert caught.value.param == param


def test_change_leaves_out_what_it_does_not_name() -> None:
    change = Body(parse_object(b'{"title": "New"}')).take(ConversationChange)

    assert (change.title, change.metadata, change.archived, change.version) == ("New",) + (
        None,
    ) * 3


def test_items_validate_against_the_official_type() -> None:
    said = item_object(Message("msg_1", "user", "Hi", 1)).to_wire()

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


def test_document_with_too_many_items_in_all_is_refused() -> None:
    item = {"id": "a", "role": "user", "text": "", "created_at": 1}
    items = [{**item, "id": str(place)} for place in range(MAX_ITEMS)]
    conversation = {"id": "c", "title": "", "created_at": 1, "updated_at": 1, "items": items}
    num_conversations = MAX_ITEMS_IN_ALL // MAX_ITEMS + 1
    document = {**archive_head(), "conversations": [conversation] * num_conversations}

    with pytest.raises(InvalidRequest) as caught:
        parse_archive(orjson.dumps(document))

    assert caught.value.param == "conversations"
    assert str(MAX_ITEMS_IN_ALL) in caught.value.message
