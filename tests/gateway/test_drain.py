"""A gateway that is told to stop: no new work, a bounded time for the old, and nothing is lost."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import websockets
from gateway.gateway_helpers import (
    Service,
    Socket,
    chat,
    eventually,
    outcome_of,
    run_service,
    sse_data,
    text_of,
)

PATIENT_S = 60.0


@asynccontextmanager
async def patient_service(store_url: str) -> AsyncIterator[Service]:
    """Run a service that waits for what runs; in the end it has nothing to wait for."""
    async with run_service(store_url, drain_s=PATIENT_S) as service:
        yield service


@asynccontextmanager
async def busy_socket(service: Service) -> AsyncIterator[Socket]:
    """Open a socket on which an answer runs, and has text."""
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello")
        service.model.allow(2)
        await socket.receive_texts(2)
        yield socket


async def begin_stop(service: Service) -> None:
    service.server.should_exit = True
    await eventually(lambda: service.services.drain.is_draining)


async def test_idle_socket_is_told_and_closed_at_once(store_url: str) -> None:
    async with patient_service(store_url) as service, service.socket() as socket:
        await begin_stop(service)

        goaway = await socket.receive()
        close = await socket.receive_close()

    assert (goaway["type"], goaway["reason"]) == ("chatserve:goaway", "drain")
    assert 0 < goaway["deadline_ms"] <= 1000 * PATIENT_S
    assert "sequence_number" not in goaway
    assert close.code == 1012


async def test_running_answer_ends_on_its_socket_before_that_is_closed(store_url: str) -> None:
    async with patient_service(store_url) as service, busy_socket(service) as socket:
        await begin_stop(service)
        goaway = await socket.receive()
        service.model.release()
        events = await socket.receive_answer()
        close = await socket.receive_close()

    assert goaway["type"] == "chatserve:goaway"
    assert text_of(events) == "llo"
    assert events[-1]["type"] == "response.completed"
    assert close.code == 1012


async def test_create_on_a_draining_gateway_is_refused(store_url: str) -> None:
    async with patient_service(store_url) as service, busy_socket(service) as socket:
        await begin_stop(service)
        await socket.create("Another", stream_id="late")

        _, refusal = await socket.receive_until("error")
        service.model.release()

    assert (refusal["status"], refusal["error"]["code"]) == (503, "draining")
    assert refusal["stream_id"] == "late"
    assert refusal["error"]["headers"]["retry-after"] == "1"


async def test_new_work_is_refused_while_old_work_runs(store_url: str) -> None:
    async with patient_service(store_url) as service, busy_socket(service):
        await begin_stop(service)

        ready = await service.http.get("/ready")
        health = await service.http.get("/health")
        refused = await service.http.post("/v1/chat/completions", json=chat("Hi"))
        with pytest.raises(websockets.InvalidStatus) as upgrade:
            await websockets.connect(f"ws://127.0.0.1:{service.port}/v1/responses")
        service.model.release()

    assert (ready.status_code, ready.json()["reason"]) == (503, "draining")
    assert health.status_code == 200
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")
    assert refused.headers["retry-after"] == "1"
    assert upgrade.value.response.status_code == 503


async def test_cancel_is_served_to_the_last(store_url: str) -> None:
    async with patient_service(store_url) as service, busy_socket(service) as socket:
        await begin_stop(service)
        await socket.send("response.cancel")

        events = await socket.receive_answer()
        close = await socket.receive_close()

    assert events[-1]["type"] == "response.incomplete"
    assert close.code == 1012


async def test_answer_that_runs_too_long_goes_on_and_is_resumed_elsewhere(store_url: str) -> None:
    async with run_service(store_url, drain_s=0.05) as service, service.socket() as socket:
        service.model.hold()
        await socket.create("Hello")
        service.model.allow(2)
        events = await socket.receive_texts(2)
        service.server.should_exit = True
        close = await socket.receive_close()
        response_id = events[0]["response"]["id"]
        service.model.release()
        await outcome_of(service.store, response_id)
    async with run_service(store_url) as other, other.socket() as socket:
        after = events[-1]["sequence_number"]
        await socket.send(
            "chatserve:response.resume", response_id=response_id, starting_after=after
        )
        rest = await socket.receive_answer()

    assert close.code == 1012
    assert rest[0]["sequence_number"] == after + 1
    assert text_of(events + rest) == "Hello"


async def test_event_stream_that_runs_too_long_ends_with_an_error_that_says_so(
    store_url: str,
) -> None:
    async with run_service(store_url, drain_s=0.05) as service:
        service.model.hold()
        body = {"model": "echo", "input": "Hello", "stream": True}
        async with service.http.stream("POST", "/v1/responses", json=body) as reply:
            await service.wait_until_held()
            service.server.should_exit = True
            stream = (await reply.aread()).decode()
        events = [json.loads(data) for data in sse_data(stream)]
        service.model.release()
        outcome = await outcome_of(service.store, events[0]["response"]["id"])

    assert "draining" in json.dumps(events[-1])
    assert "resume" in json.dumps(events[-1])
    assert outcome.terminal_kind.value == "response.completed"


async def test_reply_that_takes_too_long_is_a_503(store_url: str) -> None:
    async with run_service(store_url, drain_s=0.05) as service:
        service.model.hold()
        asking = service.spawn(service.http.post("/v1/chat/completions", json=chat("Hi")))
        await service.wait_until_held()
        service.server.should_exit = True

        reply = await asking
        service.model.release()

    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "draining")


async def test_skipping_ends_the_wait(store_url: str) -> None:
    async with patient_service(store_url) as service, busy_socket(service) as socket:
        await begin_stop(service)

        service.services.drain.skip()
        close = await socket.receive_close()

    assert close.code == 1012


async def test_idle_gateway_has_nothing_to_wait_for(store_url: str) -> None:
    async with patient_service(store_url) as service:
        await service.http.get("/health")

        await begin_stop(service)

        await eventually(lambda: not service.server.servers[0].is_serving())
