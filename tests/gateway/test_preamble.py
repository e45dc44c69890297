"""The operator's preamble in front of every chat, and registered prompts through the gateway."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest_asyncio
from engine.prompt_helpers import PinningEngine, status_of
from gateway.fake_model import make_card
from gateway.gateway_helpers import Service, WorkerSettings, chat, eventually, run_service
from gateway.prompt_spy import prompt_of, prompt_of_response, rendered, said_body
from store.store_helpers import messages_of

from chatserve.engine.api import RequestId
from chatserve.store.named_prompt import NamedPrompt
from chatserve.text.chat_template import ChatMessage
from chatserve.text.tokenizer import Tokenizer

PREAMBLE = "You answer for everybody here, politely and in whole sentences."
TEXT = "You are the help desk of a small library."


async def put_in_force(service: Service, text: str | None) -> None:
    """Register a preamble, or remove it, and return once the gateway has noticed."""
    if text is None:
        await service.store.prompts.remove("", "preamble")
    else:
        await service.store.prompts.add(NamedPrompt("", "preamble", text))
    expected = [ChatMessage("system", text)] if text is not None else []
    await eventually(lambda: service.services.preamble.before([]) == expected)


@pytest_asyncio.fixture
async def polite(service: Service) -> AsyncIterator[Service]:
    """A service with a preamble in force."""
    await put_in_force(service, PREAMBLE)
    yield service


# ── What a prompt is made of ─────────────────────────────────────────────────────────────────


async def test_a_system_message_stands_behind_the_preamble_and_a_blank_line(
    polite: Service,
) -> None:
    asked = said_body(("system", TEXT), ("user", "Hello"))

    prompt = await prompt_of(polite, "/v1/chat/completions", asked)

    assert prompt == rendered(("system", f"{PREAMBLE}\n\n{TEXT}"), ("user", "Hello"))


async def test_without_a_system_message_the_preamble_is_it(polite: Service) -> None:
    prompt = await prompt_of(polite, "/v1/chat/completions", said_body(("user", "Hello")))

    assert prompt == rendered(("system", PREAMBLE), ("user", "Hello"))


async def test_only_the_first_message_counts_as_the_system_message(polite: Service) -> None:
    asked = said_body(("user", "Hi"), ("assistant", "Yes?"), ("system", TEXT), ("user", "Hello"))

    prompt = await prompt_of(polite, "/v1/chat/completions", asked)

    said = [(message["role"], message["content"]) for message in asked["messages"]]
    assert prompt == rendered(("system", PREAMBLE), *said)


async def test_a_client_that_sends_the_preamble_itself_has_it_twice(polite: Service) -> None:
    asked = said_body(("system", PREAMBLE), ("user", "Hello"))

    prompt = await prompt_of(polite, "/v1/chat/completions", asked)

    assert prompt == rendered(("system", f"{PREAMBLE}\n\n{PREAMBLE}"), ("user", "Hello"))


async def test_a_raw_completion_has_no_preamble(polite: Service) -> None:
    asked = {"model": "echo", "prompt": "abc", "max_tokens": 2}

    prompt = await prompt_of(polite, "/v1/completions", asked)

    assert prompt == tuple(Tokenizer.from_card(make_card()).encode("abc"))


async def test_a_response_has_the_preamble_before_its_instructions(polite: Service) -> None:
    prompt, _ = await prompt_of_response(polite, instructions=TEXT)

    assert prompt == rendered(("system", f"{PREAMBLE}\n\n{TEXT}"), ("user", "Hello"))


async def test_turns_of_a_session_have_one_preamble_and_store_what_was_said(
    polite: Service,
) -> None:
    items = [{"type": "message", "role": "system", "content": TEXT}]
    opened = await polite.http.post("/v1/conversations", json={"items": items})
    session_id = opened.json()["id"]

    await prompt_of_response(polite, conversation=session_id)
    second, _ = await prompt_of_response(polite, conversation=session_id)

    messages = await messages_of(polite.store, session_id)
    assert [message.content for message in messages] == [TEXT, *["Hello"] * 4]
    said = [(message.role, message.content) for message in messages[1:4]]
    assert second == rendered(("system", f"{PREAMBLE}\n\n{TEXT}"), *said)


async def test_a_response_that_builds_on_another_has_one_preamble(polite: Service) -> None:
    _, first_id = await prompt_of_response(polite)

    second, _ = await prompt_of_response(polite, previous_response_id=first_id)

    said = [("user", "Hello"), ("assistant", "Hello"), ("user", "Hello")]
    record = await polite.store.responses.get(RequestId(first_id))
    assert second == rendered(("system", PREAMBLE), *said)
    assert record is not None
    assert [message.content for message in record.messages] == ["Hello"]


# ── How it comes and goes ────────────────────────────────────────────────────────────────────


async def test_a_change_reaches_the_next_requests(service: Service) -> None:
    for text in ("first", "second", None):
        await put_in_force(service, text)

        prompt = await prompt_of(service, "/v1/chat/completions", said_body(("user", "Hello")))

        system = [("system", text)] if text is not None else []
        assert prompt == rendered(*system, ("user", "Hello"))


async def test_a_preamble_that_was_there_before_the_gateway_is_in_force(
    polite: Service, store_url: str
) -> None:
    async with run_service(store_url) as second:
        assert second.services.preamble.before([]) == [ChatMessage("system", PREAMBLE)]


async def test_a_model_without_a_system_role_refuses_chats_under_a_preamble(
    store_url: str,
) -> None:
    template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('No system role') }}"
        "{% endif %}{{ messages[0]['content'] }}"
    )
    settings = WorkerSettings(card=replace(make_card(), chat_template=template))
    async with run_service(store_url, worker=settings) as service:
        await put_in_force(service, PREAMBLE)

        reply = await service.http.post("/v1/chat/completions", json=chat("Hello"))

    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "chat_template_refused"
    assert "No system role" in reply.json()["error"]["message"]


# ── Registered prompts ───────────────────────────────────────────────────────────────────────


async def test_a_registered_prompt_is_cached_for_the_first_client_that_sends_its_text(
    store_url: str,
) -> None:
    settings = WorkerSettings(engine=PinningEngine(num_pages=512))
    async with run_service(store_url, worker=settings) as service:
        await put_in_force(service, PREAMBLE)
        support = await service.store.prompts.add(NamedPrompt("default", "support", TEXT))
        status = await status_of(service.store, support, "worker-1")

        asked = said_body(("system", TEXT), ("user", "Hello"))
        reply = await service.http.post("/v1/chat/completions", json=asked)
        stats = service.engine.stats()

    usage = reply.json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == status.num_tokens
    assert status.num_tokens > len(PREAMBLE) + len(TEXT)
    # The page in which it parts from the preamble is there twice.
    assert stats.pages_pinned == status.num_pages + 1


async def test_a_client_that_repeats_the_preamble_gains_nothing_by_it(store_url: str) -> None:
    settings = WorkerSettings(engine=PinningEngine(num_pages=512))
    async with run_service(store_url, worker=settings) as service:
        await put_in_force(service, PREAMBLE)
        public = await service.store.prompts.add(NamedPrompt("", "preamble", PREAMBLE))
        status = await status_of(service.store, public, "worker-1")

        asked = said_body(("system", PREAMBLE), ("user", "Hello"))
        reply = await service.http.post("/v1/chat/completions", json=asked)

    usage = reply.json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == status.num_tokens
    assert reply.json()["choices"][0]["message"]["content"] == "Hello"


async def test_many_requests_at_once_need_no_round_trip_for_the_preamble(polite: Service) -> None:
    calls: list[str] = []
    read = polite.store.prompts.list

    async def counted(tenant: str | None = None) -> list[NamedPrompt]:
        calls.append("read")
        return await read(tenant)

    polite.store.prompts.list = counted  # type: ignore[method-assign]
    replies = await asyncio.gather(
        *(polite.http.post("/v1/chat/completions", json=chat("Hi")) for _ in range(40))
    )

    assert {reply.status_code for reply in replies} == {200}
    assert len(calls) <= 2
