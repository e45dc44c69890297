"""Peers that send too much, too little or nothing: bounded work, and nothing left behind."""

import asyncio
import gc
import json
import os
from contextlib import AsyncExitStack
from typing import Any

import pytest
from gateway.gateway_helpers import Service, chat, eventually, run_service, text_of
from gateway.raw_client import frame, raw_client

from chatserve.gateway import replies, server_protocols
from chatserve.gateway.answering import Answering
from chatserve.gateway.connection import Connection
from chatserve.gateway.ending import PeerGone
from chatserve.gateway.in_flight import InFlight
from chatserve.gateway.outbox import Outbox
from chatserve.gateway.server_protocols import SOCKET
from chatserve.identity import LOCAL

TEXT = 0x1
PING = frame(TEXT, json.dumps({"type": "chatserve:ping", "t": 1}).encode())
NUM_REFUSED = int(os.environ.get("NUM_REFUSED_HANDSHAKES", "2000"))
"""A flood is 10,000 or more, which takes half a minute; a leak shows in fewer as well."""

NUM_AT_ONCE = 20
MAX_GROWTH = 20


async def test_flood_of_small_frames_is_answered_and_delays_nobody_else(service: Service) -> None:
    flood = 20_000
    num_bytes = flood * len(PING)  # an answer is longer than its ping
    async with raw_client(service) as peer, service.socket() as other:
        await peer.upgrade()
        sending = asyncio.create_task(peer.send(PING * flood))
        reading = asyncio.create_task(peer.read_to_end())
        await eventually(lambda: peer.num_read > 0)
        await other.send("chatserve:ping", t=7)
        pong = await other.receive()
        num_read_before = peer.num_read
        await eventually(lambda: peer.num_read > num_bytes)
        sending.cancel()
        reading.cancel()
        await asyncio.gather(sending, reading, return_exceptions=True)

    assert pong["t"] == 7
    assert num_read_before < num_bytes


class ArrivedFrames:
    """A socket whose frames have all arrived, so that none is ever waited for."""

    def __init__(self, frame: str, number: int) -> None:
        self.scope: dict[str, Any] = {"extensions": {SOCKET: None}}
        self._messages: list[dict[str, Any]] = [
            {"type": "websocket.receive", "text": frame}
        ] * number

    async def receive(self) -> dict[str, Any]:
        if self._messages:
            return self._messages.pop()
        return {"type": "websocket.disconnect", "code": 1000}


async def test_others_get_a_turn_after_each_large_frame(service: Service) -> None:
    """Sixteen frames of a megabyte were looked at before anybody else got a turn."""
    frame = json.dumps({"type": "chatserve:ping", "t": 1, "padding": "x" * 2**16})
    num_turns = 0

    async def count_turns() -> None:
        nonlocal num_turns
        while True:
            num_turns += 1
            await asyncio.sleep(0)

    async with AsyncExitStack() as lease, asyncio.TaskGroup() as tasks:
        socket: Any = ArrivedFrames(frame, 12)
        connection = Connection(socket, service.services, lease)
        outbox = Outbox(service.services.limits)
        answering = Answering(service.services, outbox, InFlight(tasks), LOCAL)
        counting = asyncio.create_task(count_turns())
        with pytest.raises(PeerGone):
            await connection._receive(answering)
        counting.cancel()

    assert num_turns >= 12


@pytest.mark.parametrize("depth", [100, 1000, 100_000])
@pytest.mark.parametrize("field", ["input", "metadata", "unknown"])
async def test_deep_json_is_an_error_or_ignored_and_the_socket_stays(
    service: Service, depth: int, field: str
) -> None:
    deep = "[" * depth + "]" * depth
    create = f'{{"type": "response.create", "model": "echo", "input": "x", "{field}": {deep}}}'
    async with service.socket() as socket:
        await socket.connection.send(create)
        answer = await socket.receive_answer()
        await socket.create("Hello", stream_id="after")
        events = await socket.receive_answer()

    assert answer[-1]["type"] in ("error", "response.completed")
    assert text_of(events) == "Hello"


async def test_refused_handshakes_leave_nothing_behind(service: Service) -> None:
    async def refused() -> bytes:
        async with raw_client(service) as peer:
            return await peer.upgrade(b"Origin: https://evil.example")

    await refused()
    await settle(service)
    before = footprint()

    for _ in range(NUM_REFUSED // NUM_AT_ONCE):
        heads = await asyncio.gather(*(refused() for _ in range(NUM_AT_ONCE)))
        assert all(b" 403 " in head for head in heads)

    await settle(service)
    assert growth(before) < MAX_GROWTH


async def test_broken_handshakes_leave_nothing_behind(service: Service) -> None:
    await settle(service)
    before = footprint()

    for _ in range(NUM_REFUSED):
        async with raw_client(service) as peer:
            await peer.send(b"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websoc")

    await settle(service)
    assert growth(before) < MAX_GROWTH


@pytest.mark.parametrize("said", [b"", b"G", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
async def test_peer_that_does_not_finish_its_headers_is_dropped(
    service: Service, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(server_protocols, "HEADER_TIMEOUT_S", 0.05)
    async with raw_client(service) as peer:
        await peer.send(said)

        assert await peer.read_to_end() == b""


async def test_second_request_must_come_in_time_as_well(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_protocols, "HEADER_TIMEOUT_S", 0.1)
    request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with raw_client(service) as peer:
        await peer.send(request)
        first = await peer.read_until(b"}")
        await peer.send(b"GET /hea")

        rest = await peer.read_to_end()

    assert first.startswith(b"HTTP/1.1 200")
    assert rest == b""


async def test_waiting_websocket_is_not_taken_for_an_unfinished_request(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_protocols, "HEADER_TIMEOUT_S", 0.05)
    async with service.socket() as socket:
        await asyncio.sleep(0.1)
        await socket.send("chatserve:ping", t=1)

        assert (await socket.receive())["type"] == "chatserve:pong"


async def test_body_that_does_not_arrive_is_a_408(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "BODY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(server_protocols, "HEADER_TIMEOUT_S", 0.1)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n"
    async with raw_client(service) as peer:
        await peer.send(head + b'{"model"')
        dribbling = asyncio.create_task(dribble(peer.send))
        received = await peer.read_to_end()
        dribbling.cancel()

    assert received.startswith(b"HTTP/1.1 408")
    assert b'"code":"body_timeout"' in received


async def test_socket_that_never_sends_anything_stays_and_costs_one_connection(
    store_url: str,
) -> None:
    async with run_service(store_url) as service, service.socket():
        reply = await service.http.post("/v1/chat/completions", json=chat("Hi"))
        num_connections = await service.metric("chatserve_connections")

    assert reply.status_code == 200
    assert num_connections == 1


async def dribble(send: object) -> None:
    assert callable(send)
    while True:
        await send(b" ")
        await asyncio.sleep(0.01)


async def settle(service: Service) -> None:
    """Return once no connection is served any more but that of the test's own client."""
    await eventually(lambda: not service.server.server_state.tasks)
    await eventually(lambda: len(service.server.server_state.connections) <= 1)
    gc.collect()


def footprint() -> int:
    """Return how many tasks and open files this process has, the gateway's among them."""
    return len(asyncio.all_tasks()) + len(os.listdir("/proc/self/fd"))


def growth(before: int) -> int:
    return footprint() - before
