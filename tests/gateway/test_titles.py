"""Titles that the model writes in the background."""

import asyncio
from typing import Any

import pytest
from gateway.gateway_helpers import TIMEOUT_S, Service, run_service

from chatserve.errors import StoreError
from chatserve.gateway.title_words import BEGINNING, QUESTION
from chatserve.protocol.request_fields import MAX_PRIORITY
from chatserve.store.queue import RequestQueue


async def create(service: Service, **body: Any) -> str:
    conversation_id: str = (await service.http.post("/v1/conversations", json=body)).json()["id"]
    return conversation_id


async def read(service: Service, conversation_id: str) -> Any:
    return (await service.http.get(f"/v1/conversations/{conversation_id}")).json()


async def titled(service: Service, conversation_id: str, source: str) -> Any:
    """Return a conversation once its title comes from there."""
    async with asyncio.timeout(TIMEOUT_S):
        found = await read(service, conversation_id)
        while found["chatserve:title_source"] != source:
            await asyncio.sleep(0.01)
            found = await read(service, conversation_id)
    return found


async def take_turn(service: Service, conversation_id: str, text: str) -> None:
    async with service.socket() as socket:
        await socket.create(text, conversation=conversation_id)
        await socket.receive_answer()


async def test_untitled_conversation_is_named_by_the_model_after_its_first_answer(
    store_url: str,
) -> None:
    async with run_service(store_url, titles="model") as service:
        service.model.answer(QUESTION, f"{BEGINNING} The blue sky\n\nIt is blue.")
        conversation_id = await create(service)

        await take_turn(service, conversation_id, "Why is the sky blue?")

        named = await titled(service, conversation_id, "model")
        items = (await service.http.get(f"/v1/conversations/{conversation_id}/items")).json()
    assert named["title"] == "The blue sky"
    assert len(items["data"]) == 2
    assert named["active_response_ids"] == []


async def test_title_is_asked_for_with_the_prompt_of_the_answer(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instructions and preamble were left out, so that nothing of it was in the prefix cache."""
    prompts: list[tuple[int, ...]] = []
    priorities: list[int] = []
    enqueue = RequestQueue.enqueue

    async def noting(self: RequestQueue, request: Any, *arguments: Any, **options: Any) -> Any:
        prompts.append(request.prompt_token_ids)
        priorities.append(request.priority)
        return await enqueue(self, request, *arguments, **options)

    monkeypatch.setattr(RequestQueue, "enqueue", noting)
    async with run_service(store_url, titles="model") as service:
        service.model.answer(QUESTION, f"{BEGINNING} Saying hello")
        conversation_id = await create(service)
        async with service.socket() as socket:
            await socket.create("Hello", conversation=conversation_id, instructions="Be brief.")
            await socket.receive_answer()
        await titled(service, conversation_id, "model")

    answer, title = prompts
    assert title[: len(answer)] == answer
    assert priorities == [0, MAX_PRIORITY]


async def test_reply_that_is_no_title_leaves_the_first_words(store_url: str) -> None:
    async with run_service(store_url, titles="model") as service:
        service.model.answer(QUESTION, f"{BEGINNING} How to bake bread")
        conversation_id = await create(service)

        await take_turn(service, conversation_id, "Why is the sky blue?")

        await service.wait_until_idle()
        named = await read(service, conversation_id)
    assert (named["title"], named["chatserve:title_source"]) == ("Why is the sky blue?", "words")


async def test_reply_that_was_cut_leaves_the_first_words(store_url: str) -> None:
    async with run_service(store_url, titles="model") as service:
        service.model.answer(QUESTION, f"{BEGINNING} The sky is blue because of the light")
        conversation_id = await create(service)

        await take_turn(service, conversation_id, "Why is the sky blue?")

        await service.wait_until_idle()
        named = await read(service, conversation_id)
    assert (named["title"], named["chatserve:title_source"]) == ("Why is the sky blue?", "words")


async def test_name_that_the_user_gives_meanwhile_stays(store_url: str) -> None:
    async with run_service(store_url, titles="model") as service:
        conversation_id = await create(service)
        service.model.hold()
        async with service.socket() as socket:
            await socket.create("Hello", conversation=conversation_id)
            await service.wait_until_held()
            path = f"/v1/chatserve/conversations/{conversation_id}/title"
            await service.http.post(path, json={"title": "Mine"})
            service.model.release()
            await socket.receive_answer()

        await service.wait_until_idle()

        named = await read(service, conversation_id)
    assert (named["title"], named["chatserve:title_source"]) == ("Mine", "user")


async def test_stopping_before_the_answer_has_ended_leaves_the_first_words(store_url: str) -> None:
    async with run_service(store_url, titles="model") as service:
        conversation_id = await create(service)
        service.model.hold()
        async with service.socket() as socket:
            await socket.create("Why is the sky blue?", conversation=conversation_id)
            await service.wait_until_held()
        assert service.services.titles is not None

        await service.services.titles.aclose()

        service.model.release()
        await service.wait_until_idle()
        named = await read(service, conversation_id)
    assert (named["title"], named["chatserve:title_source"]) == ("Why is the sky blue?", "words")


async def test_words_alone_name_a_conversation_where_the_model_is_not_to_be_asked(
    service: Service,
) -> None:
    conversation_id = await create(service)

    await take_turn(service, conversation_id, "Why is the sky blue?")

    named = await read(service, conversation_id)
    assert (named["title"], named["chatserve:title_source"]) == ("Why is the sky blue?", "words")
    assert service.services.titles is None


async def test_title_that_cannot_be_asked_for_leaves_the_first_words(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue = RequestQueue.enqueue
    asked = asyncio.Event()

    async def without_titles(self: RequestQueue, *arguments: Any, **options: Any) -> Any:
        if "turn" not in options:
            asked.set()
            raise StoreError("no memory is left")
        return await enqueue(self, *arguments, **options)

    monkeypatch.setattr(RequestQueue, "enqueue", without_titles)
    async with run_service(store_url, titles="model") as service:
        conversation_id = await create(service)

        await take_turn(service, conversation_id, "Why is the sky blue?")

        async with asyncio.timeout(TIMEOUT_S):
            await asked.wait()
        named = await read(service, conversation_id)
        await take_turn(service, conversation_id, "And the sea?")
    assert (named["title"], named["chatserve:title_source"]) == ("Why is the sky blue?", "words")
