"""Going on with an answer that was cut: what is asked, stored, shown and refused."""

from typing import Any

import pytest
from gateway.continue_helpers import answers, ask, go_on, items, new_conversation, post
from gateway.gateway_helpers import Service, text_of
from gateway.prompt_spy import prompt_of, rendered

from chatserve.identity import LOCAL
from chatserve.store.sessions import Message, MessageStatus

SAID = "Grüße an 漢字 und Wort"  # the echo model says one byte a token


@pytest.mark.parametrize(
    ("cut", "text"),
    [
        (2, "Gr"),
        (3, "Gr"),
        (7, "Grüße"),
        (11, "Grüße an "),
        (13, "Grüße an "),
        (17, "Grüße an 漢字"),
    ],
    ids=["in-a-word", "in-a-character", "before-a-space", "at-a-space", "in-three-bytes", "later"],
)
async def test_text_goes_on_where_it_was_cut(service: Service, cut: int, text: str) -> None:
    conversation_id = await new_conversation(service)
    first = await ask(service, conversation_id, SAID, cut)

    second = await go_on(service, conversation_id)

    begun, rest = await answers(service, conversation_id)
    assert (first["status"], begun.content) == ("incomplete", text)
    assert (second["status"], begun.content + rest.content) == ("completed", SAID)
    assert len(begun.token_ids) == cut


async def test_item_and_response_say_what_they_continue(service: Service) -> None:
    conversation_id = await new_conversation(service)
    await ask(service, conversation_id, "abcdef", 2)

    response = await go_on(service, conversation_id)

    shown = await items(service, conversation_id)
    assert [item["content"][0]["text"] for item in shown] == ["abcdef", "ab", "cdef"]
    assert shown[2]["chatserve:parent_id"] == shown[1]["id"]
    assert shown[2]["chatserve:continues"] is True
    assert "chatserve:continues" not in shown[1]
    assert response["chatserve:continue"] is True
    assert response["output"][0]["chatserve:continues"] is True


async def test_a_socket_continues_a_named_answer_next_to_what_followed_it(service: Service) -> None:
    conversation_id = await new_conversation(service)
    await ask(service, conversation_id, "abcdef", 2)
    (begun,) = await answers(service, conversation_id)
    await ask(service, conversation_id, "other", 99)

    async with service.socket() as socket:
        members = {"chatserve:continue": True, "chatserve:parent_id": begun.message_id}
        await socket.send("response.create", model="echo", conversation=conversation_id, **members)
        events = await socket.receive_answer()

    assert text_of(events) == "cdef"
    path = f"/v1/chatserve/conversations/{conversation_id}/branches"
    branches = (await service.http.get(path)).json()
    assert [branch["excerpt"] for branch in branches["data"]] == ["other", "cdef"]
    assert [fork["parent_id"] for fork in branches["forks"]] == [begun.message_id]


async def test_later_turns_see_one_answer(service: Service) -> None:
    conversation_id = await new_conversation(service)
    await ask(service, conversation_id, "abcdef", 2)
    await go_on(service, conversation_id, 1)
    await go_on(service, conversation_id)

    body = {"model": "echo", "conversation": conversation_id, "input": "more"}
    prompt = await prompt_of(service, "/v1/responses", body)

    assert prompt == rendered(("user", "abcdef"), ("assistant", "abcdef"), ("user", "more"))


async def test_answer_without_token_ids_goes_on_from_its_text(service: Service) -> None:
    conversation_id = "conv_text"
    cut = Message("msg_b", "assistant", "漢 ab ", 0, status=MessageStatus.INCOMPLETE)
    asked = Message("msg_a", "user", "漢 ab cd", 0)
    await service.store.sessions.create(LOCAL.owner, conversation_id, messages=[asked, cut])

    await go_on(service, conversation_id)

    assert (await answers(service, conversation_id))[1].content == "cd"


async def test_answer_that_was_cancelled_before_its_first_text_begins_again(
    service: Service,
) -> None:
    conversation_id = await new_conversation(service)
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("abc", conversation=conversation_id)
        created = (await socket.receive_until("response.in_progress"))[0]
        await socket.send("response.cancel", response_id=created["response"]["id"])
        await socket.receive_answer()
    service.model.release()

    await go_on(service, conversation_id)

    assert [each.content for each in await answers(service, conversation_id)] == ["", "abc"]


async def test_continuation_of_a_deleted_answer_stands_for_itself(service: Service) -> None:
    conversation_id = await new_conversation(service)
    await ask(service, conversation_id, "abcdef", 2)
    await go_on(service, conversation_id)
    begun = (await items(service, conversation_id))[1]["id"]

    await service.http.delete(f"/v1/conversations/{conversation_id}/items/{begun}")

    shown = await items(service, conversation_id)
    assert [item["content"][0]["text"] for item in shown] == ["abcdef", "cdef"]
    assert "chatserve:continues" not in shown[1]
    assert (await ask(service, conversation_id, "more", 99))["status"] == "completed"


async def test_export_and_import_keep_what_continues_what(service: Service) -> None:
    conversation_id = await new_conversation(service)
    await ask(service, conversation_id, "abcdef", 2)
    await go_on(service, conversation_id)
    path = "/v1/chatserve/conversations"
    document = (await service.http.get(f"{path}/{conversation_id}/export")).json()
    await service.http.delete(f"/v1/conversations/{conversation_id}")

    imported = (await service.http.post(f"{path}/import", json=document)).json()

    copied = await items(service, imported["conversation_ids"][0])
    assert [item["continues"] for item in document["conversations"][0]["items"]] == [
        False,
        False,
        True,
    ]
    assert [item.get("chatserve:continues") for item in copied] == [None, None, True]


@pytest.mark.parametrize(
    ("parent", "role"), [("a", "assistant"), ("b", "user"), (None, "assistant")]
)
async def test_only_an_answer_continues_an_answer_in_a_document(
    service: Service, parent: str | None, role: str
) -> None:
    last = {"id": "c", "parent_id": parent, "role": role, "text": "", "created_at": 0}
    found = [
        {"id": "a", "role": "user", "text": "", "created_at": 0},
        {"id": "b", "parent_id": "a", "role": "assistant", "text": "", "created_at": 0},
        {**last, "continues": True},
    ]
    conversation = {"id": "x", "title": "", "created_at": 0, "updated_at": 0, "items": found}
    document = {"object": "chatserve.conversations", "format": 1, "conversations": [conversation]}

    reply = await service.http.post("/v1/chatserve/conversations/import", json=document)

    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "conversations[0].items[2].continues"


@pytest.mark.parametrize(
    ("members", "status", "param"),
    [
        ({}, 400, "chatserve:continue"),
        ({"input": "Hello"}, 400, None),
        ({"generate": False}, 400, None),
        ({"chatserve:parent_id": "root"}, 400, "chatserve:continue"),
        ({"chatserve:parent_id": "msg_none"}, 404, "chatserve:parent_id"),
        ({"conversation": None}, 400, None),
        ({"chatserve:continue": "yes"}, 400, "chatserve:continue"),
    ],
    ids=["complete", "input", "warm-up", "root", "unknown", "no-conversation", "no-flag"],
)
async def test_what_cannot_go_on_is_refused(
    service: Service, members: dict[str, Any], status: int, param: str | None
) -> None:
    conversation_id = await new_conversation(service)
    await ask(service, conversation_id, "abc", 99)
    body = {"conversation": conversation_id, "chatserve:continue": True, **members}

    reply = await post(service, body)

    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param)
    assert len(await items(service, conversation_id)) == 2


async def test_answer_in_flight_is_no_answer_to_go_on_with(service: Service) -> None:
    conversation_id = await new_conversation(service)
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("abc", conversation=conversation_id)
        await socket.receive_until("response.queued")

        reply = await post(service, {"conversation": conversation_id, "chatserve:continue": True})

    assert reply.status_code == 409
    assert reply.json()["error"]["code"] == "response_already_in_flight"


async def test_answer_that_was_stopped_within_a_character_goes_on_with_it(service: Service) -> None:
    conversation_id = await new_conversation(service)
    service.model.hold()
    async with service.socket() as socket:
        await socket.create(SAID, conversation=conversation_id)
        service.model.allow(3)
        events = await socket.receive_texts(2)
        await service.wait_until_held()
        await socket.send("response.cancel", response_id=events[0]["response"]["id"])
        await socket.receive_answer()
    service.model.release()

    await go_on(service, conversation_id)

    begun, rest = await answers(service, conversation_id)
    assert (begun.content, begun.content + rest.content) == ("Gr", SAID)
