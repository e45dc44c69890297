"""The Responses protocol over HTTP, as tests speak it."""

import json
from typing import Any

from gateway.gateway_helpers import Event, Service, sse_data
from openai.types.responses.responses_server_event import ResponsesServerEvent
from pydantic import TypeAdapter

PATH = "/v1/responses"

official_event: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)


def body(text: str, **members: Any) -> Event:
    """Return a create body with one user message."""
    return {"model": "echo", "input": text, **members}


async def create(service: Service, text: str, **members: Any) -> Event:
    """Create a response and return its object."""
    reply = await service.http.post(PATH, json=body(text, **members))
    assert reply.status_code == 200, reply.text
    response: Event = reply.json()
    return response


async def stream(service: Service, text: str, **members: Any) -> list[Event]:
    """Create a response and return all of its events."""
    reply = await service.http.post(PATH, json=body(text, stream=True, **members))
    assert reply.status_code == 200, reply.text
    return events_in(reply.text)


async def follow(service: Service, response_id: str, after: int = -1) -> list[Event]:
    """Read a response's events after one of them, over HTTP."""
    params = {"stream": "true"} if after < 0 else {"stream": "true", "starting_after": str(after)}
    reply = await service.http.get(f"{PATH}/{response_id}", params=params)
    assert reply.status_code == 200, reply.text
    return events_in(reply.text)


async def resume(service: Service, response_id: str, after: int = -1) -> list[Event]:
    """Read a response's events after one of them, on a socket."""
    async with service.socket() as socket:
        await socket.send(
            "chatserve:response.resume", response_id=response_id, starting_after=after
        )
        return await socket.receive_answer()


def events_in(stream: str) -> list[Event]:
    """Return the events of a stream, whose frames name their types outside the JSON as well."""
    events = [json.loads(data) for data in sse_data(stream)]
    kinds = [line.removeprefix("event: ") for line in stream.split("\n") if line[:6] == "event:"]
    assert kinds == [event["type"] for event in events]
    return events


def check_official(events: list[Event]) -> None:
    """Validate events against the official client's types; ours are those that carry our slug."""
    for event in events:
        if not event["type"].startswith("chatserve:"):
            official_event.validate_python(_without_our_reason(event))


def _without_our_reason(event: Event) -> Event:
    """Leave out the one value of a base field that is ours: why a cancelled answer ended."""
    details = event.get("response", {}).get("incomplete_details")
    if details != {"reason": "chatserve:cancelled"}:
        return event
    return {**event, "response": {**event["response"], "incomplete_details": None}}
