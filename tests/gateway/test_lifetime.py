"""A connection grows old: it is told in time, takes nothing new, and ends with a reason."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from gateway.gateway_helpers import Service, run_service, text_of

from chatserve.gateway import leaving

LIFETIME_S = 0.2


@asynccontextmanager
async def short_lived(store_url: str) -> AsyncIterator[Service]:
    async with run_service(store_url, connection_lifetime_s=LIFETIME_S) as service:
        yield service


async def test_first_frame_tells_the_lifetime(store_url: str) -> None:
    async with short_lived(store_url) as service, service.socket() as socket:
        limits = socket.opened["limits"]

    assert limits["lifetime_ms"] == 1000 * LIFETIME_S


async def test_idle_socket_is_told_and_closed_with_1001(store_url: str) -> None:
    async with short_lived(store_url) as service, service.socket() as socket:
        goaway = await socket.receive()
        close = await socket.receive_close()

    assert (goaway["type"], goaway["reason"]) == ("chatserve:goaway", "lifetime")
    assert 0 < goaway["deadline_ms"] < 1000 * LIFETIME_S
    assert (close.code, close.reason) == (1001, "the lifetime of this connection is over")


async def test_answer_in_time_is_complete_and_a_create_after_the_notice_refused(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "LEAD_SHARE", 0.99)
    async with run_service(store_url, connection_lifetime_s=20.0) as service:
        service.model.hold()
        async with service.socket() as socket:
            await socket.create("Hello")
            await socket.receive_until("chatserve:goaway")
            await socket.create("Late", stream_id="late")
            *_, refusal = await socket.receive_until("error")
            service.model.release()
            events = await socket.receive_answer()
            close = await socket.receive_close()

    assert refusal["status"] == 400
    assert refusal["error"]["code"] == "websocket_connection_limit_reached"
    assert refusal["stream_id"] == "late"
    assert text_of(events) == "Hello"
    assert close.code == 1001


async def test_answer_that_runs_past_the_end_is_resumed_on_a_new_socket(store_url: str) -> None:
    async with short_lived(store_url) as service:
        service.model.hold()
        async with service.socket() as socket:
            await socket.create("Hello")
            created = await socket.receive()
            close = await socket.receive_close()
        async with service.socket() as socket:
            service.model.release()
            await socket.send("chatserve:response.resume", response_id=created["response"]["id"])
            events = await socket.receive_answer()

    assert close.code == 1001
    assert text_of(events) == "Hello"
