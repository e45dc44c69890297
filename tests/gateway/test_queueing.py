"""What clients see of the queue: their turn, their place, their time, and its end."""

import asyncio
import json

import pytest
from gateway.gateway_helpers import (
    Service,
    WorkerSettings,
    chat,
    eventually,
    kinds_of,
    response_ids,
    run_service,
    sse_data,
    text_of,
)

from chatserve.gateway import overdue, updates

PATH = "/v1/chat/completions"
ONE_SEAT = WorkerSettings(max_claims=1)


async def until_waiting(service: Service, count: int) -> None:
    """Return once so many requests wait in the store."""
    async with asyncio.timeout(20):
        while await service.store.queue.depth("echo") != count:  # noqa: ASYNC110 - it is polled
            await asyncio.sleep(0.005)


async def test_running_answer_ends_at_its_timeout(store_url: str) -> None:
    async with run_service(store_url) as service:
        service.model.hold()

        reply = await service.http.post(PATH, json=chat("abc", timeout=0.2))
        service.model.release()
        await service.wait_until_idle()

    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "deadline_exceeded")
    assert "its timeout is 0.2 s" in reply.json()["error"]["message"]


async def test_stream_that_runs_past_its_timeout_ends_with_an_error_frame(store_url: str) -> None:
    async with run_service(store_url) as service:
        service.model.hold()
        service.model.allow(2)

        reply = await service.http.post(PATH, json=chat("abc", timeout=2, stream=True))

    *chunks, error = [json.loads(data) for data in sse_data(reply.text)]
    texts = [chunk["choices"][0]["delta"]["content"] for chunk in chunks]
    assert reply.status_code == 200
    assert "".join(texts) == "ab"
    assert error["error"]["code"] == "deadline_exceeded"


async def test_answer_on_the_socket_keeps_what_it_had(store_url: str) -> None:
    async with run_service(store_url) as service, service.socket() as socket:
        service.model.hold()
        service.model.allow(2)
        await socket.create("abc", timeout=2)

        events = await socket.receive_answer()

    response = events[-1]["response"]
    assert kinds_of(events)[-1] == "response.failed"
    assert response["error"]["chatserve:code"] == "deadline_exceeded"
    assert response["output"][0]["content"][0]["text"] == text_of(events) == "ab"
    assert kinds_of(events).count("response.failed") == 1


async def test_waiting_request_ends_at_its_timeout(store_url: str) -> None:
    async with run_service(store_url, worker=ONE_SEAT) as service:
        service.model.hold()
        running = service.spawn(service.http.post(PATH, json=chat("a")))
        await service.wait_until_held()

        reply = await service.http.post(PATH, json=chat("b", timeout=0.05))
        service.model.release()
        await running

    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "deadline_exceeded")
    assert "its timeout is 0.05 s" in reply.json()["error"]["message"]


async def test_waiting_request_ends_at_its_timeout_when_no_worker_is_left(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overdue, "PERIOD_S", 0.01)
    async with run_service(store_url, worker=ONE_SEAT) as service:
        service.model.hold()
        running = service.spawn(service.http.post(PATH, json=chat("a", timeout=2)))
        await service.wait_until_held()
        waiting = service.spawn(service.http.post(PATH, json=chat("b", timeout=2)))
        await until_waiting(service, 1)
        service.stop_worker.set()
        service.model.release()
        await eventually(lambda: not service.services.models.live)

        replies = [await waiting, await running]

    assert replies[0].json()["error"]["code"] == "deadline_exceeded"
    assert all(reply.status_code in (200, 504) for reply in replies)


async def test_operators_limit_holds_for_requests_that_name_none_or_a_longer_one(
    store_url: str,
) -> None:
    async with run_service(store_url, request_timeout_s=0.2) as service:
        service.model.hold()

        replies = await asyncio.gather(
            service.http.post(PATH, json=chat("a")),
            service.http.post(PATH, json=chat("b", timeout=3600)),
        )

    assert [reply.status_code for reply in replies] == [504, 504]
    assert all("its timeout is 0.2 s" in reply.text for reply in replies)


async def test_urgent_request_goes_first(store_url: str) -> None:
    async with (
        run_service(store_url, worker=ONE_SEAT) as service,
        service.socket() as socket,
    ):
        service.model.hold()
        await socket.create("running", stream_id="running")
        await service.wait_until_held()
        for count, (lane, priority) in enumerate({"low": 5, "none": None, "high": -5}.items(), 1):
            await socket.create(lane, stream_id=lane, priority=priority)
            await until_waiting(service, count)
        service.model.release()

        answers = [await socket.receive_until("response.completed") for _ in range(4)]

    ended = [events[-1]["stream_id"] for events in answers]
    assert ended == ["running", "high", "none", "low"]


async def test_place_and_estimate_are_told_while_a_request_waits(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates, "POLL_S", 0.01)
    async with (
        run_service(store_url, worker=ONE_SEAT) as service,
        service.socket() as socket,
    ):
        service.model.hold()
        await socket.create("running", stream_id="running")
        await service.wait_until_held()
        await socket.create("first", stream_id="first")
        [*_, update] = await socket.receive_until("chatserve:queue.updated")
        await socket.create("second", stream_id="second")
        [*_, later] = await socket.receive_until("chatserve:queue.updated")
        service.model.release()

    assert (update["stream_id"], update["position"]) == ("first", 0)
    assert (later["stream_id"], later["position"]) == ("second", 1)
    assert 0 < update["eta_ms"] < later["eta_ms"]


async def test_refused_request_leaves_nothing_behind(store_url: str) -> None:
    async with run_service(store_url, worker=ONE_SEAT, max_queue=1) as service:
        service.model.hold()
        tasks = [service.spawn(service.http.post(PATH, json=chat("a")))]
        await service.wait_until_held()
        tasks.append(service.spawn(service.http.post(PATH, json=chat("b"))))
        await until_waiting(service, 1)
        before = await response_ids(service.store)

        refused = await service.http.post(PATH, json=chat("c"))

        assert refused.status_code == 429
        assert await response_ids(service.store) == before
        service.model.release()
        assert [(await task).status_code for task in tasks] == [200, 200]
