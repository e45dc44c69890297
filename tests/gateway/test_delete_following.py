"""Deleting a message together with all that follow it."""

from gateway.continue_helpers import ask, items, new_conversation
from gateway.gateway_helpers import Service


async def test_a_branch_goes_with_its_first_message(service: Service) -> None:
    conversation_id = await new_conversation(service)
    kept = await ask(service, conversation_id, "one", 99)
    gone = await ask(service, conversation_id, "two", 99)
    await ask(service, conversation_id, "three", 99)
    said = gone["chatserve:parent_id"]
    await ask(service, conversation_id, [], 99, **{"chatserve:parent_id": said})

    path = f"/v1/conversations/{conversation_id}/items/{said}"
    reply = await service.http.delete(path, params={"following": "true"})

    assert reply.status_code == 200
    left = await items(service, conversation_id, tree="true")
    assert [each["id"] for each in left] == [
        kept["chatserve:parent_id"],
        kept["chatserve:message_id"],
    ]
    again = await service.http.delete(path, params={"following": "true"})
    assert again.status_code == 404


async def test_without_it_what_follows_stays(service: Service) -> None:
    conversation_id = await new_conversation(service)
    first = await ask(service, conversation_id, "one", 99)

    path = f"/v1/conversations/{conversation_id}/items/{first['chatserve:parent_id']}"
    await service.http.delete(path)

    left = await items(service, conversation_id)
    assert [each["id"] for each in left] == [first["chatserve:message_id"]]
