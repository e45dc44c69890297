"""Conversations and their items through the official client, over sockets."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from gateway.gateway_helpers import Service
from openai import AsyncOpenAI, BadRequestError, ConflictError, NotFoundError
from openai.types.responses import EasyInputMessageParam


@pytest_asyncio.fixture
async def client(service: Service) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def said(text: str) -> EasyInputMessageParam:
    return {"type": "message", "role": "user", "content": text}


def text_of(item: object) -> str:
    content = getattr(item, "content", [])
    return "".join(part.text for part in content)


async def test_conversation_is_created_read_updated_and_deleted(client: AsyncOpenAI) -> None:
    created = await client.conversations.create(items=[said("Hello")], metadata={"a": "b"})
    read = await client.conversations.retrieve(created.id)
    updated = await client.conversations.update(created.id, metadata={"c": "d"})
    deleted = await client.conversations.delete(created.id)

    assert read == created
    assert created.metadata == {"a": "b"}
    assert (updated.id, updated.metadata) == (created.id, {"c": "d"})
    assert (deleted.id, deleted.deleted) == (created.id, True)
    with pytest.raises(NotFoundError):
        await client.conversations.retrieve(created.id)


async def test_items_are_created_listed_over_pages_read_and_deleted(client: AsyncOpenAI) -> None:
    conversation = await client.conversations.create()

    created = await client.conversations.items.create(
        conversation.id, items=[said(text) for text in "abc"]
    )
    listed = [
        text_of(item)
        async for item in client.conversations.items.list(conversation.id, limit=2, order="asc")
    ]
    assert created.last_id is not None
    read = await client.conversations.items.retrieve(
        created.last_id, conversation_id=conversation.id
    )
    after = await client.conversations.items.delete(
        created.last_id, conversation_id=conversation.id
    )

    assert [text_of(item) for item in created.data] == ["a", "b", "c"]
    assert listed == ["a", "b", "c"]
    assert text_of(read) == "c"
    assert after.id == conversation.id
    with pytest.raises(NotFoundError):
        await client.conversations.items.retrieve(created.last_id, conversation_id=conversation.id)


async def test_what_an_item_could_include_is_refused(client: AsyncOpenAI) -> None:
    conversation = await client.conversations.create()

    with pytest.raises(BadRequestError) as refusal:
        await client.conversations.items.list(
            conversation.id, include=["message.output_text.logprobs"]
        )

    assert refusal.value.code == "unsupported"


async def test_update_that_lost_a_race_is_refused(client: AsyncOpenAI) -> None:
    conversation = await client.conversations.create()
    await client.conversations.update(conversation.id, metadata={"tab": "1"})

    with pytest.raises(ConflictError) as refusal:
        await client.conversations.update(
            conversation.id, metadata={"tab": "2"}, extra_headers={"if-match": '"0"'}
        )

    assert refusal.value.code == "version_conflict"
    read = await client.conversations.retrieve(conversation.id)
    assert read.metadata == {"tab": "1"}
