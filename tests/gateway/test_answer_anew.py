"""One more answer to a message that is there already, and where an answer stands in its tree."""

import pytest
from gateway.continue_helpers import ask, items, new_conversation, post
from gateway.gateway_helpers import Service


async def test_a_message_gets_another_answer_next_to_the_first(service: Service) -> None:
    conversation_id = await new_conversation(service)
    first = await ask(service, conversation_id, "abc", 99)
    said = first["chatserve:parent_id"]

    second = await ask(service, conversation_id, [], 99, **{"chatserve:parent_id": said})

    shown = await items(service, conversation_id, tree="true")
    assert [(each["id"], each["chatserve:parent_id"]) for each in shown] == [
        (said, None),
        (first["chatserve:message_id"], said),
        (second["chatserve:message_id"], said),
    ]
    assert [each["content"][0]["text"] for each in shown] == ["abc"] * 3
    assert second["chatserve:parent_id"] == said


async def test_without_a_parent_the_newest_message_is_answered(service: Service) -> None:
    conversation_id = await new_conversation(service, items=[{"role": "user", "content": "abc"}])

    response = await ask(service, conversation_id, [], 99)

    (said, answer) = await items(service, conversation_id)
    assert answer["id"] == response["chatserve:message_id"]
    assert said["id"] == response["chatserve:parent_id"]


async def test_every_event_of_a_turn_says_where_the_answer_stands(service: Service) -> None:
    conversation_id = await new_conversation(service)
    async with service.socket() as socket:
        await socket.send("response.create", model="echo", conversation=conversation_id, input="ab")
        events = await socket.receive_answer()

    heads = [event["response"] for event in events if "response" in event]
    places = {(head["chatserve:parent_id"], head["chatserve:message_id"]) for head in heads}
    shown = await items(service, conversation_id)
    assert places == {(shown[0]["id"], shown[1]["id"])}


async def test_a_response_outside_a_conversation_has_no_place(service: Service) -> None:
    response = (await post(service, {"input": "ab"})).json()

    assert "chatserve:parent_id" not in response
    assert "chatserve:message_id" not in response


@pytest.mark.parametrize("items_before", [[], [{"role": "assistant", "content": "hm"}]])
async def test_only_what_a_user_said_can_be_answered(
    service: Service, items_before: list[dict[str, str]]
) -> None:
    conversation_id = await new_conversation(service, items=items_before)

    reply = await post(service, {"conversation": conversation_id, "input": []})

    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "input"
    assert len(await items(service, conversation_id)) == len(items_before)


async def test_a_turn_that_forgot_its_input_is_refused(service: Service) -> None:
    conversation_id = await new_conversation(service, items=[{"role": "user", "content": "abc"}])

    reply = await post(service, {"conversation": conversation_id})

    assert reply.json()["error"]["code"] == "missing_required_parameter"
