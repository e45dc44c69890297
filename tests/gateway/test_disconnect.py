"""Every way in which a reader can leave, and what becomes of the answer."""

import asyncio
import json
import random

import pytest
from gateway.gateway_helpers import (
    Service,
    WorkerSettings,
    chat,
    first_response_id,
    outcome_of,
    response_ids,
    run_service,
    sse_data,
    text_of,
)

from chatserve.engine.api import FinishReason, RequestId


async def read_characters(service: Service, text: str, num_characters: int) -> None:
    """Start a stream, read that many characters of it, and hang up."""
    body = chat(text, stream=True)
    async with service.http.stream("POST", "/v1/chat/completions", json=body) as reply:
        lines = reply.aiter_lines()
        while num_characters:
            for payload in sse_data(await anext(lines)):
                delta = json.loads(payload)["choices"][0]["delta"]
                num_characters -= len(delta.get("content", ""))


@pytest.mark.parametrize("num_characters", [0, 1, 5])
async def test_stream_that_is_left_is_aborted(service: Service, num_characters: int) -> None:
    service.model.hold()
    service.model.allow(num_characters)

    await read_characters(service, "ab" * 500, num_characters)

    outcome = await outcome_of(service.store, await first_response_id(service.store))
    service.model.release()
    await service.wait_until_idle()
    assert outcome.finish_reason is FinishReason.ABORT


async def test_stream_left_at_its_last_token_is_aborted(service: Service) -> None:
    service.model.hold()
    service.model.allow(2)

    await read_characters(service, "ab", 2)

    outcome = await outcome_of(service.store, await first_response_id(service.store))
    service.model.release()
    await service.wait_until_idle()
    assert outcome.finish_reason is FinishReason.ABORT


async def test_stream_left_in_the_queue_is_aborted_without_being_claimed(store_url: str) -> None:
    async with (
        run_service(store_url, worker=WorkerSettings(max_claims=1)) as service,
        service.socket() as socket,
    ):
        service.model.hold()
        await socket.create("running")
        running, *_ = await socket.receive_until("response.queued")
        await service.wait_until_held()

        await read_characters(service, "waiting", 0)

        waiting = await response_ids(service.store) - {RequestId(running["response"]["id"])}
        outcome = await outcome_of(service.store, waiting.pop())
        assert outcome.finish_reason is FinishReason.ABORT
        assert outcome.usage.output_tokens == 0
        assert await service.store.queue.depth("echo") == 0


async def test_plain_request_that_is_left_is_aborted(service: Service) -> None:
    service.model.hold()
    asking = asyncio.create_task(service.http.post("/v1/chat/completions", json=chat("Hello")))
    response_id = await first_response_id(service.store)
    await service.wait_until_held()

    asking.cancel()

    outcome = await outcome_of(service.store, response_id)
    service.model.release()
    await service.wait_until_idle()
    assert outcome.finish_reason is FinishReason.ABORT


@pytest.fixture
def kept(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service that keeps unstored responses for the test to look at."""
    monkeypatch.setattr(service.services.generations, "forget", lambda _ids: None)
    return service


async def test_unstored_response_is_aborted_at_once(kept: Service) -> None:
    service = kept
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", store=False)
        events = await socket.receive_until("response.queued")
        await service.wait_until_held()

    outcome = await outcome_of(service.store, events[0]["response"]["id"])
    assert outcome.finish_reason is FinishReason.ABORT


async def test_stored_response_outside_a_session_is_aborted_after_the_grace(
    store_url: str,
) -> None:
    async with run_service(store_url, disconnect_grace_s=0.05) as service:
        service.model.hold()
        async with service.socket() as socket:
            await socket.create("Hello")
            events = await socket.receive_until("response.queued")
            await service.wait_until_held()

        outcome = await outcome_of(service.store, events[0]["response"]["id"])

    assert outcome.finish_reason is FinishReason.ABORT


async def test_reader_that_comes_back_within_the_grace_keeps_the_answer(store_url: str) -> None:
    async with run_service(store_url, disconnect_grace_s=60.0) as service:
        service.model.hold()
        service.model.allow(3)
        async with service.socket() as socket:
            await socket.create("Hello")
            before = await socket.receive_texts(3)
        async with service.socket() as socket:
            await socket.send(
                "chatserve:response.resume",
                response_id=before[0]["response"]["id"],
                starting_after=before[-1]["sequence_number"],
            )
            service.model.release()
            after = await socket.receive_answer()

    assert text_of(before) + text_of(after) == "Hello"
    assert after[-1]["type"] == "response.completed"


async def test_turn_of_a_session_runs_to_its_end(store_url: str) -> None:
    async with run_service(store_url, disconnect_grace_s=0.0) as service:
        created = await service.http.post("/v1/conversations", json={})
        service.model.hold()
        async with service.socket() as socket:
            await socket.create("Hello", conversation=created.json()["id"])
            events = await socket.receive_until("response.queued")
            await service.wait_until_held()
        service.model.release()

        outcome = await outcome_of(service.store, events[0]["response"]["id"])

    assert outcome.finish_reason is FinishReason.STOP


async def test_background_response_runs_to_its_end(store_url: str) -> None:
    async with run_service(store_url, disconnect_grace_s=0.0) as service:
        service.model.hold()
        async with service.socket() as socket:
            await socket.create("Hello", background=True)
            events = await socket.receive_until("response.queued")
            await service.wait_until_held()
        service.model.release()

        outcome = await outcome_of(service.store, events[0]["response"]["id"])

    assert outcome.finish_reason is FinishReason.STOP


async def test_answer_lives_while_one_of_two_readers_stays(store_url: str) -> None:
    async with (
        run_service(store_url, disconnect_grace_s=0.0) as service,
        service.socket() as stays,
    ):
        service.model.hold()
        async with service.socket() as leaves:
            await leaves.create("Hello")
            events = await leaves.receive_until("response.queued")
            await service.wait_until_held()
            response_id = events[0]["response"]["id"]
            await stays.send("chatserve:response.resume", response_id=response_id)
            await stays.receive_until("response.queued")
            await service.wait_until_held()
        service.model.release()

        rest = await stays.receive_answer()

    assert rest[-1]["type"] == "response.completed"


async def test_lane_that_still_waits_is_dropped_with_its_connection(kept: Service) -> None:
    service = kept
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("first", store=False)
        await socket.create("second", store=False)
        events = await socket.receive_until("response.queued")
        await service.wait_until_held()

    await outcome_of(service.store, events[0]["response"]["id"])
    assert len(await response_ids(service.store)) == 1


async def test_clients_that_vanish_at_random_leave_every_page_free_or_cached(
    kept: Service,
) -> None:
    service = kept
    chance = random.Random(7)

    async def vanish() -> None:
        async with service.socket() as socket:
            await socket.create("x" * chance.randrange(1, 60), store=False)
            for _ in range(chance.randrange(8)):
                await socket.receive()

    await asyncio.gather(*(vanish() for _ in range(40)))

    for response_id in await response_ids(service.store):
        await outcome_of(service.store, response_id)
    await service.wait_until_idle()


async def test_streams_at_once_all_move_before_any_has_ended(service: Service) -> None:
    service.model.hold()
    texts: dict[str, str] = {f"lane-{number}": "" for number in range(8)}
    async with service.socket() as socket:
        for name in texts:
            await socket.create("x" * 50, stream_id=name)
        while not all(texts.values()):
            service.model.allow(1)
            event = await socket.receive()
            assert event["type"] != "response.completed"
            texts[event["stream_id"]] += event.get("delta", "")

    assert max(map(len, texts.values())) < 50
