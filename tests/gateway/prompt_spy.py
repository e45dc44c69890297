"""What a request's prompt is made of: the token ids that a gateway has queued for it."""

from typing import Any

import orjson
from engine.prompt_helpers import ENCODER
from gateway.gateway_helpers import Event, Service, text_of

from chatserve.store import keys
from chatserve.text.chat_template import ChatMessage

Headers = dict[str, str]


async def prompt_of(
    service: Service, path: str, body: Event, headers: Headers | None = None
) -> tuple[int, ...]:
    """Post a body and return the token ids that were queued for it."""
    service.model.hold()
    posting = service.spawn(service.http.post(path, json=body, headers=headers))
    await service.wait_until_held()
    (request_id,) = await service.store.commands.call("ZRANGE", keys.FIRST.key(keys.LEASES), 0, -1)
    prompt = await queued_prompt(service, request_id)
    service.model.release()
    assert (await posting).status_code == 200
    return prompt


async def queued_prompt(service: Service, request_id: str) -> tuple[int, ...]:
    """Return the token ids of a request in flight."""
    packed = await service.store.commands.call(
        "HGET", keys.FIRST.key(keys.REQUEST + request_id), "payload"
    )
    return tuple(orjson.loads(packed)["prompt_token_ids"])


async def prompt_of_response(
    service: Service, headers: Headers | None = None, **members: Any
) -> tuple[tuple[int, ...], str]:
    """Ask for a response and return the token ids that were queued for it, and its id."""
    service.model.hold()
    async with service.socket(additional_headers=headers) as socket:
        await socket.create("Hello", **members)
        created = (await socket.receive_until("response.queued"))[0]
        response_id = created["response"]["id"]
        prompt = await queued_prompt(service, response_id)
        service.model.release()
        events = await socket.receive_answer()
    assert text_of(events) == "Hello"
    return prompt, response_id


def rendered(*messages: tuple[str, str]) -> tuple[int, ...]:
    """Return the prompt of these messages and nothing else."""
    return ENCODER.prompt_token_ids([ChatMessage(role, content) for role, content in messages])


def said_body(*messages: tuple[str, str], model: str = "echo") -> Event:
    """Return the body of a chat completion."""
    said = [{"role": role, "content": content} for role, content in messages]
    return {"model": model, "messages": said}
