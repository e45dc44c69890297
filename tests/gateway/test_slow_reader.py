"""A peer that does not read: bounded memory here, no effect on others, and a way back."""

import asyncio
import json
import socket as sockets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import websockets
from gateway.gateway_helpers import TIMEOUT_S, Service, Socket, outcome_of, run_service, text_of

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


@asynccontextmanager
async def narrow_socket(service: Service) -> AsyncIterator[Socket]:
    """Open a WebSocket over a connection that holds little, and read nothing unless asked."""
    raw = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", service.port))
    uri = f"ws://127.0.0.1:{service.port}/v1/responses"
    options: dict[str, Any] = {"max_queue": 1, "max_size": None, "ping_interval": None}
    async with websockets.connect(uri, sock=raw, **options) as connection:
        yield Socket(connection)


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
        close = await socket.receive_close()

    assert close.code == 1013
