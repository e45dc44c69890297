"""A peer that does not read: bounded memory here, no effect on others, and a way back."""

import asyncio
import json
import socket as sockets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets
from gateway.gateway_helpers import (
    TIMEOUT_S,
    Service,
    Socket,
    WorkerSettings,
    eventually,
    outcome_of,
    response_ids,
    run_service,
    sse_data,
    text_of,
)

from chatserve.gateway import server_protocols
from chatserve.gateway.connection_limits import ConnectionLimits

LIMITS = ConnectionLimits(
    outbox_high_bytes=8 * 1024,
    outbox_low_bytes=2 * 1024,
    outbox_max_bytes=32 * 1024,
    stall_s=0.5,
    close_timeout_s=30.0,
)

# Repeated in the response object of four events of each answer, so that few answers are many bytes.
PADDING = "x" * 3500


async def narrow_connection(service: Service) -> sockets.socket:
    """Open a connection that holds little."""
    raw = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", service.port))
    return raw


@asynccontextmanager
async def narrow_socket(service: Service) -> AsyncIterator[Socket]:
    """Open a WebSocket over a narrow connection, and read nothing unless asked."""
    raw = await narrow_connection(service)
    uri = f"ws://127.0.0.1:{service.port}/v1/responses"
    options: dict[str, Any] = {"max_queue": 1, "max_size": None, "ping_interval": None}
    async with websockets.connect(uri, sock=raw, **options) as connection:
        yield Socket(connection)


@asynccontextmanager
async def narrow_stream(service: Service, num_choices: int) -> AsyncIterator[asyncio.StreamReader]:
    """Open an event stream over a narrow connection, of more than fits the way to its reader."""
    asked = {"model": "echo", "prompt": "a", "max_tokens": 1000, "n": num_choices, "stream": True}
    body = json.dumps(asked).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
    raw = await narrow_connection(service)
    reader, writer = await asyncio.open_connection(sock=raw, limit=1024)
    writer.write(head.encode() + b"connection: close\r\n\r\n" + body)
    try:
        yield reader
    finally:
        writer.close()


def num_closes(service: Service, code: int) -> float:
    """Return how many sockets have ended with this code."""
    registry = service.services.metrics.registry
    labels = {"code": str(code)}
    return registry.get_sample_value("chatserve_connections_closed_total", labels) or 0.0


async def start_many(socket: Socket, num_answers: int) -> None:
    for number in range(num_answers):
        await socket.create(
            "Hello", stream_id=f"lane-{number}", instructions=PADDING, background=True
        )


async def test_peer_that_does_not_read_is_closed_with_1013_and_can_resume(store_url: str) -> None:
    async with run_service(store_url, limits=LIMITS, send_buffer_bytes=4096) as service:
        async with narrow_socket(service) as socket:
            await start_many(socket, 16)
            events = [await socket.receive() for _ in range(2)]
            created = next(e for e in events if e["type"] == "response.created")
            await service.wait_until_unread()
            close = await socket.receive_close()
        await outcome_of(service.store, created["response"]["id"])
        async with service.socket() as back:
            await back.send("chatserve:response.resume", response_id=created["response"]["id"])
            answer = await back.receive_answer()

    assert close.code == 1013
    assert text_of(answer) == "Hello"


async def test_slow_peer_gets_everything_and_delays_nobody(store_url: str) -> None:
    limits = ConnectionLimits(outbox_high_bytes=8 * 1024, outbox_low_bytes=2 * 1024)
    async with (
        run_service(store_url, limits=limits, send_buffer_bytes=4096) as service,
        narrow_socket(service) as slow,
        service.socket() as other,
    ):
        await start_many(slow, 16)
        await other.create("Hello")
        quick = await other.receive_answer()
        answers = [await slow.receive_answer() for _ in range(16)]

    assert text_of(quick) == "Hello"
    events = [event for events in answers for event in events if "sequence_number" in event]
    for number in range(16):
        of_lane = [event for event in events if event["stream_id"] == f"lane-{number}"]
        assert text_of(of_lane) == "Hello"
        assert [event["sequence_number"] for event in of_lane] == list(range(len(of_lane)))


async def test_peer_that_writes_and_never_reads_is_closed(store_url: str) -> None:
    limits = ConnectionLimits(outbox_max_bytes=16 * 1024, close_timeout_s=30.0)
    ping = json.dumps({"type": "chatserve:ping", "t": 1.5})
    async with (
        run_service(store_url, limits=limits, send_buffer_bytes=4096) as service,
        narrow_socket(service) as socket,
        asyncio.timeout(TIMEOUT_S),
    ):
        for _ in range(20_000):
            await socket.connection.send(ping)
        await eventually(lambda: num_closes(service, 1013) == 1)
        close = await socket.receive_close()

    assert close.code == 1013


async def test_choices_wait_in_their_logs_for_a_client_that_does_not_read(store_url: str) -> None:
    # Tokens come one by one, so that each is a frame of its own and not all fit the buffers.
    worker = WorkerSettings(step_s=0.001)
    async with (
        run_service(store_url, worker=worker, send_buffer_bytes=4096) as service,
        narrow_stream(service, 4) as reader,
    ):
        await reader.readline()
        await service.wait_until_read_by(4)
        for response_id in await response_ids(service.store):
            await outcome_of(service.store, response_id)
        num_read = await service.metric("chatserve_readers")
        stream = (await reader.read()).decode()

    choices = [json.loads(data)["choices"][0] for data in sse_data(stream) if data != "[DONE]"]
    texts = ["".join(c["text"] for c in choices if c["index"] == number) for number in range(4)]
    assert num_read == 4
    assert [len(text) for text in texts] == [1000] * 4
    assert sse_data(stream)[-1] == "[DONE]"


async def test_event_stream_that_is_not_read_is_dropped(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the kernel noticed such a client, and only where it acknowledges nothing."""
    monkeypatch.setattr(server_protocols, "STALL_S", 0.3)
    worker = WorkerSettings(step_s=0.001)
    async with (
        run_service(store_url, worker=worker, send_buffer_bytes=4096) as service,
        narrow_stream(service, 4) as reader,
    ):
        await reader.readline()
        await service.wait_until_read_by(4)
        await service.wait_until_unread()
        stream = await reader.read()

    assert b"[DONE]" not in stream


async def test_event_stream_that_is_read_slowly_stays(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_protocols, "STALL_S", 0.3)
    worker = WorkerSettings(step_s=0.001)
    async with (
        run_service(store_url, worker=worker, send_buffer_bytes=4096) as service,
        narrow_stream(service, 4) as reader,
    ):
        stream = b""
        while piece := await reader.read(16 * 1024):
            stream += piece
            await asyncio.sleep(0.02)

    assert sse_data(stream.decode())[-1] == "[DONE]"
