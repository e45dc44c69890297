"""Handshakes of sockets that no client of good faith sends: each is answered, and nothing fails."""

import asyncio
import json

import pytest
from gateway.gateway_helpers import Service, eventually
from gateway.raw_client import UPGRADE, close_code, frame, raw_client

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = 0x1
PING = frame(TEXT, json.dumps({"type": "chatserve:ping", "t": 7}).encode())
TOO_LARGE = b"\x81\xff" + (2**21).to_bytes(8, "big") + bytes(4)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (UPGRADE + b"Cookie: " + b"a" * 9_000 + b"\r\n", 431),
        (UPGRADE + b"".join(b"X-%d: a\r\n" % number for number in range(200)), 431),
        (UPGRADE.replace(b"responses", b"responses?" + b"a" * 9_000), 414),
        (UPGRADE.replace(b"GET", b"POST"), 405),
        (UPGRADE.replace(b"Version: 13", b"Version: 12"), 400),
        (UPGRADE.replace(b"Sec-WebSocket-Key", b"X-Key"), 400),
        (UPGRADE + b"Transfer-Encoding: chunked\r\n", 400),
        (UPGRADE + b"X: \x85\x1c\r\n", 400),
    ],
)
async def test_handshake_that_cannot_be_read_is_refused_and_closed(
    shared_service: Service, head: bytes, status: int
) -> None:
    """One that the second parser refused was never answered, and its connection never closed."""
    async with raw_client(shared_service) as peer:
        await peer.send(head + b"\r\n")

        received = await peer.read_to_end()

    assert received.startswith(b"HTTP/1.1 %d " % status)
    await eventually(lambda: not shared_service.server.server_state.tasks)


async def test_frame_sent_right_behind_the_handshake_is_answered(shared_service: Service) -> None:
    async with raw_client(shared_service) as peer:
        await peer.send(UPGRADE + b"\r\n" + PING)

        received = await peer.read_until(b'"t":7')

    assert received.startswith(b"HTTP/1.1 101 ")


async def test_frames_sent_ahead_of_the_answer_are_kept_in_order(shared_service: Service) -> None:
    half = len(PING) // 2
    async with raw_client(shared_service) as peer:
        peer.writer.write(UPGRADE + b"\r\n" + PING + PING[:half])
        await asyncio.sleep(0)
        peer.writer.write(PING[half:] + PING)

        received = [await peer.read_until(b"chatserve:pong") for _ in range(3)]

    assert received[0].startswith(b"HTTP/1.1 101 ")


async def test_senseless_frame_ahead_of_the_answer_ends_the_socket_as_it_would_later(
    shared_service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """It made the server's parser fail, with a traceback for every such connection."""
    for rest in (TOO_LARGE, b"\x81\x00", b"\xff" * 40):
        async with raw_client(shared_service) as peer:
            await peer.send(UPGRADE + b"\r\n")
            await peer.send(rest)

            received = await peer.read_to_end()

        assert received.startswith(b"HTTP/1.1 101 ")
        assert close_code(received) in (1002, 1009)
    assert not caplog.records


async def test_peer_that_leaves_within_its_handshake_is_forgotten(shared_service: Service) -> None:
    async with raw_client(shared_service) as peer:
        await peer.send(UPGRADE + b"\r\n" + PING)
        peer.writer.transport.abort()

    await eventually(lambda: not shared_service.server.server_state.connections)
    await eventually(lambda: not shared_service.server.server_state.tasks)
