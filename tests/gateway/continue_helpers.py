"""Turns of a conversation that are cut, and gone on with."""

from typing import Any

import httpx
from gateway.gateway_helpers import Event, Service
from store.store_helpers import messages_of

from chatserve.store.sessions import Message

PATH = "/v1/responses"


async def new_conversation(service: Service, **body: Any) -> str:
    reply = await service.http.post("/v1/conversations", json=body)
    conversation_id: str = reply.json()["id"]
    return conversation_id


async def ask(
    service: Service, conversation_id: str, said: str | list[Any], num_tokens: int, **members: Any
) -> Event:
    """Take a turn of at most so many tokens."""
    body = {"input": said, "max_output_tokens": num_tokens, **members}
    return await _respond(service, conversation_id, body)


async def go_on(
    service: Service, conversation_id: str, num_tokens: int = 200, **members: Any
) -> Event:
    """Go on with an answer for at most so many tokens."""
    body = {"chatserve:continue": True, "max_output_tokens": num_tokens, **members}
    return await _respond(service, conversation_id, body)


async def _respond(service: Service, conversation_id: str, body: Event) -> Event:
    reply = await post(service, {"conversation": conversation_id, **body})
    assert reply.status_code == 200, reply.text
    response: Event = reply.json()
    return response


async def post(service: Service, body: Event) -> httpx.Response:
    model = service.services.models.live[0].card.name
    return await service.http.post(PATH, json={"model": model, **body})


async def answers(service: Service, conversation_id: str) -> list[Message]:
    """Return the model's messages, in the order of writing."""
    stored = await messages_of(service.store, conversation_id)
    return [message for message in stored if message.role == "assistant"]


async def items(service: Service, conversation_id: str, **query: Any) -> list[Event]:
    path = f"/v1/conversations/{conversation_id}/items"
    reply = await service.http.get(path, params={"order": "asc", "limit": 100, **query})
    data: list[Event] = reply.json()["data"]
    return data
