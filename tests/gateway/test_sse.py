"""Event streams on the wire: framing, keep-alive, and the end."""

import asyncio
import json
from typing import Any

import pytest
from gateway.gateway_helpers import Service, chat

from chatserve.gateway import sse
from chatserve.gateway.sse import Write, data_frame, send_events


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\n", "\r\n"])
def test_frame_is_one_line_whatever_the_text(character: str) -> None:
    frame = data_frame({"text": f"a{character}b"})

    decoded = frame.decode()
    assert decoded.splitlines() == [decoded[:-2], ""]
    assert json.loads(decoded.removeprefix("data: ")) == {"text": f"a{character}b"}


class Transport:
    """An ASGI client that keeps what was sent and leaves when it is told to."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.left = asyncio.Event()

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


async def test_silence_is_filled_with_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEPALIVE_S", 0.01)
    transport = Transport()

    async def produce(write: Write) -> None:
        await write(b"data: 1\n\n")
        while transport.body.count(b":\n\n") < 2:  # noqa: ASYNC110 - the body has no event
            await asyncio.sleep(0)
        await write(b"data: 2\n\n")

    await send_events(transport.receive, transport.send, produce, {})

    before, after = transport.body.split(b"data: 2\n\n")
    assert before.startswith(b"data: 1\n\n:\n\n:\n\n")
    assert b"data" not in after


async def test_stream_ends_with_an_empty_last_piece() -> None:
    transport = Transport()

    async def produce(write: Write) -> None:
        await write(b"data: 1\n\n")

    await send_events(transport.receive, transport.send, produce, {"x-request-id": "r"})

    start, *_, last = transport.sent
    assert dict(start["headers"])[b"x-request-id"] == b"r"
    assert dict(start["headers"])[b"x-accel-buffering"] == b"no"
    assert dict(start["headers"])[b"cache-control"] == b"no-store"
    assert last == {"type": "http.response.body", "body": b"", "more_body": False}


async def test_producing_is_cancelled_when_the_client_leaves() -> None:
    transport = Transport()
    cancelled = asyncio.Event()

    async def produce(write: Write) -> None:
        try:
            await write(b"data: 1\n\n")
            transport.left.set()
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    await send_events(transport.receive, transport.send, produce, {})

    assert cancelled.is_set()


async def test_connection_can_be_used_again_after_a_stream(service: Service) -> None:
    for _ in range(3):
        reply = await service.http.post("/v1/chat/completions", json=chat("Hi", stream=True))
        assert reply.text.endswith("data: [DONE]\n\n")

    stream = reply.extensions["network_stream"]
    assert stream.get_extra_info("socket") is not None
    assert "connection" not in reply.headers
