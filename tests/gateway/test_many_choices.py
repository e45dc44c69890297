"""Several choices for one prompt: what the client sees, what is computed, and all ways to end."""

import asyncio
import json
from typing import Any

import pytest
from gateway.gateway_helpers import (
    Service,
    WorkerSettings,
    chat,
    outcome_of,
    response_ids,
    run_service,
    sse_data,
)
from gateway.seeded_engine import SeededEngine

from chatserve.engine.api import FinishReason, GenerationRequest, Outcome, RequestId
from chatserve.errors import StoreError
from chatserve.gateway.admission import seed_of_choice

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
ONE_SEAT = WorkerSettings(max_claims=1)
SEEDED = WorkerSettings(engine=SeededEngine())


def chunks_of(body: str) -> list[Any]:
    """Return the chunks of an event stream that came to its end."""
    *payloads, last = sse_data(body)
    assert last == "[DONE]"
    return [json.loads(payload) for payload in payloads]


async def texts_of(service: Service, **members: Any) -> list[str]:
    """Complete a raw prompt, streamed or not, and return the text of each choice."""
    body = {"model": "echo", "prompt": "x" * 40, "max_tokens": 12, **members}
    reply = await service.http.post(TEXT, json=body)
    assert reply.status_code == 200, reply.text
    if not body.get("stream"):
        return [choice["text"] for choice in reply.json()["choices"]]
    choices = [chunk["choices"][0] for chunk in chunks_of(reply.text)]
    numbers = range(body.get("n", 1))
    return ["".join(c["text"] for c in choices if c["index"] == number) for number in numbers]


async def outcomes(service: Service) -> list[Outcome]:
    """Return how all answers in the store ended, waiting for them."""
    return [await outcome_of(service.store, i) for i in await response_ids(service.store)]


async def until_started(service: Service, num_answers: int) -> set[RequestId]:
    """Return the ids of the answers in the store once there are so many."""
    async with asyncio.timeout(20):
        while len(found := await response_ids(service.store)) < num_answers:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return found


async def test_whole_answer_has_numbered_choices_and_one_usage(service: Service) -> None:
    reply = await service.http.post(CHAT, json=chat("Hello", n=3))

    answer = reply.json()
    choices = answer["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    assert [choice["message"]["content"] for choice in choices] == ["Hello"] * 3
    assert [choice["finish_reason"] for choice in choices] == ["stop"] * 3
    assert answer["usage"]["completion_tokens"] == 3 * (len("Hello") + 1)
    assert answer["id"] == reply.headers["x-request-id"]


async def test_stream_gives_each_choice_its_role_its_text_and_its_end(service: Service) -> None:
    body = chat("Hello", n=3, stream=True, stream_options={"include_usage": True})

    reply = await service.http.post(CHAT, json=body)

    *chunks, last = chunks_of(reply.text)
    for number in range(3):
        first, *middle, end = [
            c["choices"][0] for c in chunks if c["choices"][0]["index"] == number
        ]
        assert first["delta"] == {"role": "assistant", "content": ""}
        assert "".join(choice["delta"]["content"] for choice in middle) == "Hello"
        assert {choice["finish_reason"] for choice in (first, *middle)} == {None}
        assert end["finish_reason"] == "stop"
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 3 * (len("Hello") + 1)
    assert all(chunk["usage"] is None for chunk in chunks)
    assert {chunk["id"] for chunk in (*chunks, last)} == {reply.headers["x-request-id"]}


async def test_streamed_choices_all_move_before_any_has_ended(service: Service) -> None:
    service.model.hold()
    texts = dict.fromkeys(range(8), "")
    body = chat("x" * 50, n=8, stream=True)
    async with service.http.stream("POST", CHAT, json=body) as reply:
        lines = reply.aiter_lines()
        while not all(texts.values()):
            service.model.allow(1)
            for payload in sse_data(await anext(lines)):
                choice = json.loads(payload)["choices"][0]
                assert choice["finish_reason"] is None
                texts[choice["index"]] += choice["delta"]["content"]

    assert max(map(len, texts.values())) < 50


async def test_prompt_is_computed_once_and_counted_once(service: Service) -> None:
    body = {"model": "echo", "prompt": "x" * 100, "max_tokens": 5, "n": 3}

    reply = await service.http.post(TEXT, json=body)
    await service.wait_until_idle()
    stats = service.engine.stats()

    assert (stats.query_tokens, stats.hit_tokens) == (300, 2 * 99)
    assert reply.json()["usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": 15,
        "total_tokens": 115,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_each_choice_is_what_a_request_with_its_seed_gives(
    store_url: str, stream: bool
) -> None:
    async with run_service(store_url, worker=SEEDED) as service:
        together = await texts_of(service, n=8, seed=2**63 - 1, stream=stream)
        alone = [
            await texts_of(service, seed=seed_of_choice(2**63 - 1, index)) for index in range(8)
        ]

    assert [[text] for text in together] == alone
    assert len(set(together)) == 8


async def test_choices_without_a_seed_differ_from_each_other_and_the_next_time(
    store_url: str,
) -> None:
    async with run_service(store_url, worker=SEEDED) as service:
        texts = [*await texts_of(service, n=4), *await texts_of(service, n=4)]

    assert len(set(texts)) == 8


async def test_choices_are_asked_for_alike_but_for_id_and_seed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[GenerationRequest] = []
    enqueue = service.store.queue.enqueue

    async def note(request: GenerationRequest, *arguments: Any, **options: Any) -> Any:
        asked.append(request)
        return await enqueue(request, *arguments, **options)

    monkeypatch.setattr(service.store.queue, "enqueue", note)
    body = chat("Hello", n=3, seed=5, priority=-3, timeout=60, max_tokens=4)

    await service.http.post(CHAT, json=body)

    assert len({request.request_id for request in asked}) == 3
    assert [request.sampling.seed for request in asked] == [seed_of_choice(5, i) for i in range(3)]
    assert {(r.priority, r.timeout_ms, r.sampling.max_tokens) for r in asked} == {(-3, 60_000, 4)}
    assert len({request.prompt_token_ids for request in asked}) == 1


async def test_queue_with_room_for_some_takes_none(store_url: str) -> None:
    async with run_service(store_url, worker=ONE_SEAT, max_queue=3) as service:
        service.model.hold()
        running = service.spawn(service.http.post(CHAT, json=chat("running")))
        await service.wait_until_held()
        waiting = service.spawn(service.http.post(CHAT, json=chat("waiting")))
        async with asyncio.timeout(10):
            while await service.store.queue.depth("echo") == 0:  # noqa: ASYNC110 - it is polled
                await asyncio.sleep(0.01)
        before = await response_ids(service.store)

        refused = await service.http.post(CHAT, json=chat("refused", n=3))

        taken = await response_ids(service.store) - before
        ends = [await outcome_of(service.store, response_id) for response_id in taken]
        depth = await service.store.queue.depth("echo")
        service.model.release()
        await asyncio.gather(running, waiting)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
    assert "retry-after" in refused.headers
    assert [end.finish_reason for end in ends] == [FinishReason.ABORT] * 2
    assert depth == 1


async def test_store_that_fails_at_one_choice_leaves_none_running(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.model.hold()
    enqueue = service.store.queue.enqueue
    num_calls = 0

    async def fail_at_second(*arguments: Any, **options: Any) -> Any:
        nonlocal num_calls
        num_calls += 1
        if num_calls == 2:
            raise StoreError("sabotage")
        return await enqueue(*arguments, **options)

    monkeypatch.setattr(service.store.queue, "enqueue", fail_at_second)

    reply = await service.http.post(CHAT, json=chat("Hello", n=3))

    ends = await outcomes(service)
    service.model.release()
    await service.wait_until_idle()
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store_unavailable")
    assert [end.finish_reason for end in ends] == [FinishReason.ABORT]


async def test_client_that_leaves_a_stream_aborts_every_choice(service: Service) -> None:
    service.model.hold()
    service.model.allow(2)
    async with service.http.stream("POST", CHAT, json=chat("Hello", n=3, stream=True)) as reply:
        await anext(reply.aiter_lines())

    ends = await outcomes(service)
    service.model.release()
    await service.wait_until_idle()
    await service.wait_until_unread()
    assert [end.finish_reason for end in ends] == [FinishReason.ABORT] * 3


async def test_client_that_leaves_before_the_whole_answer_aborts_every_choice(
    service: Service,
) -> None:
    service.model.hold()
    asking = service.spawn(service.http.post(CHAT, json=chat("Hello", n=3)))
    await until_started(service, 3)

    asking.cancel()

    ends = await outcomes(service)
    service.model.release()
    await service.wait_until_idle()
    await service.wait_until_unread()
    assert [end.finish_reason for end in ends] == [FinishReason.ABORT] * 3


@pytest.mark.parametrize("stream", [False, True])
async def test_choice_that_fails_ends_the_request_and_the_others(
    service: Service, stream: bool
) -> None:
    service.model.hold()
    asking = service.spawn(service.http.post(CHAT, json=chat("Hello", n=3, stream=stream)))
    failing = sorted(await until_started(service, 3))[0]

    await service.store.queue.cancel(failing)

    reply = await asking
    ends = await outcomes(service)
    service.model.release()
    await service.wait_until_idle()
    error = json.loads(sse_data(reply.text)[-1]) if stream else reply.json()
    assert reply.status_code == (200 if stream else 500)
    assert error["error"]["code"] == "cancelled"
    assert [end.finish_reason for end in ends] == [FinishReason.ABORT] * 3


async def test_choices_end_at_their_timeout(service: Service) -> None:
    service.model.hold()

    reply = await service.http.post(CHAT, json=chat("Hello", n=3, timeout=0.2))

    await outcomes(service)
    service.model.release()
    await service.wait_until_idle()
    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "deadline_exceeded")
