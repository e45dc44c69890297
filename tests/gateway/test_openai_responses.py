"""The official client's Responses surface over HTTP, with its own types and parsing."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from gateway.gateway_helpers import Service, outcome_of
from gateway.responses_helpers import check_official
from openai import APIError, APIStatusError, AsyncOpenAI, ConflictError, NotFoundError
from openai.types.responses import Response
from openai.types.responses.response_item import ResponseItem
from pydantic import TypeAdapter

from chatserve.store import keys

official_item: TypeAdapter[object] = TypeAdapter(ResponseItem)


@pytest_asyncio.fixture
async def openai(service: Service) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{service.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


async def test_response_is_created_and_retrieved(openai: AsyncOpenAI) -> None:
    created = await openai.responses.create(model="echo", input="Grüße, 世界", instructions="Echo.")

    retrieved = await openai.responses.retrieve(created.id)

    Response.model_validate(created.to_dict())
    assert created.output_text == "Grüße, 世界"
    assert created.instructions == "Echo."
    assert retrieved == created


async def test_response_is_streamed(openai: AsyncOpenAI) -> None:
    stream = await openai.responses.create(model="echo", input="Hello", stream=True)

    events = [event async for event in stream]

    check_official([event.to_dict() for event in events])
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Hello"
    assert events[-1].type == "response.completed"


async def test_stream_helper_collects_the_final_response(openai: AsyncOpenAI) -> None:
    async with openai.responses.stream(model="echo", input="Hello") as stream:
        final = await stream.get_final_response()

    assert final.output_text == "Hello"


async def test_background_response_is_followed_from_where_its_stream_broke(
    service: Service, openai: AsyncOpenAI
) -> None:
    service.model.hold()
    stream = await openai.responses.create(
        model="echo", input="Hello", background=True, stream=True
    )
    created = await anext(aiter(stream))
    assert created.type == "response.created"
    await stream.close()
    service.model.release()

    rest = await openai.responses.retrieve(created.response.id, stream=True, starting_after=0)
    events = [event async for event in rest]

    assert [event.sequence_number for event in events] == list(range(1, len(events) + 1))
    assert events[-1].type == "response.completed"


async def test_background_response_is_polled(service: Service, openai: AsyncOpenAI) -> None:
    created = await openai.responses.create(model="echo", input="Hello", background=True)
    await outcome_of(service.store, created.id)

    polled = await openai.responses.retrieve(created.id)

    assert (created.status, polled.status, polled.output_text) == ("queued", "completed", "Hello")


async def test_background_response_is_cancelled(service: Service, openai: AsyncOpenAI) -> None:
    service.model.hold()
    created = await openai.responses.create(model="echo", input="Hello", background=True)

    cancelled = await openai.responses.cancel(created.id)

    assert cancelled.status == "incomplete"
    assert cancelled.incomplete_details is not None
    assert cancelled.incomplete_details.to_dict() == {"reason": "chatserve:cancelled"}


async def test_response_is_deleted(openai: AsyncOpenAI) -> None:
    created = await openai.responses.create(model="echo", input="Hello")

    await openai.responses.delete(created.id)

    with pytest.raises(NotFoundError) as caught:
        await openai.responses.retrieve(created.id)
    assert caught.value.code == "response_not_found"


async def test_input_items_are_listed_through_their_pages(openai: AsyncOpenAI) -> None:
    first = await openai.responses.create(model="echo", input="One", instructions="Echo.")
    second = await openai.responses.create(model="echo", input="Two", previous_response_id=first.id)

    items = openai.responses.input_items.list(second.id, limit=2, order="asc")
    listed = [item async for item in items]

    for item in listed:
        official_item.validate_python(item.to_dict())
    contents: list[Any] = [item.to_dict()["content"] for item in listed]
    assert [content[0]["text"] for content in contents] == ["One", "One", "Two"]


async def test_another_body_under_the_same_key_is_a_conflict(openai: AsyncOpenAI) -> None:
    headers = {"Idempotency-Key": "e1"}
    await openai.responses.create(model="echo", input="Hello", extra_headers=headers)

    with pytest.raises(ConflictError) as caught:
        await openai.responses.create(model="echo", input="Bye", extra_headers=headers)

    assert caught.value.code == "duplicate_event_id"


async def test_bad_request_names_field_and_family(openai: AsyncOpenAI) -> None:
    with pytest.raises(APIStatusError) as caught:
        await openai.responses.create(model="echo", input="Hello", temperature=9)

    assert (caught.value.status_code, caught.value.type, caught.value.param) == (
        400,
        "invalid_request",
        "temperature",
    )


async def test_stream_that_loses_its_log_raises(service: Service, openai: AsyncOpenAI) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", background=True)
        (created, *_) = await socket.receive_until("response.in_progress")
    response_id = created["response"]["id"]
    partition = service.store.partitions.of_id(response_id)
    await service.store.commands.call("DEL", partition.key(keys.LOG + response_id))

    stream = await openai.responses.retrieve(response_id, stream=True)

    with pytest.raises(APIError) as caught:
        async for _ in stream:
            pass
    assert caught.value.code == "response_not_found"
