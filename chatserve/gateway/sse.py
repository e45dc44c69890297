"""Server-sent events over a plain HTTP response.

Owns the framing: one `data:` line per event, its type on a line before it where it has one,
comments while nothing happens, a chunked body that ends properly. Knows no answer; whoever has one
is given a function that writes a frame.

Two characters that JSON leaves alone are line ends to some readers of event streams (U+2028 and
U+2029, and U+0085 with them), so they are escaped after encoding.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from starlette.datastructures import MutableHeaders
from starlette.types import Receive, Send

from chatserve.gateway.disconnect import until_disconnect

# Proxies cut silent responses after 60 s (nginx) or 100 s (Cloudflare).
KEEPALIVE_S = 15.0

DONE = b"data: [DONE]\n\n"

Write = Callable[[bytes], Awaitable[None]]
"""Sends one frame, waiting while the client's connection has no room."""

_COMMENT = b":\n\n"
_LINE_ENDS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)


def data_frame(value: Any) -> bytes:
    """Return the frame of one JSON value."""
    encoded = orjson.dumps(value)
    for line_end, escaped in _LINE_ENDS:
        encoded = encoded.replace(line_end, escaped)
    return b"data: " + encoded + b"\n\n"


def event_frame(event: dict[str, Any]) -> bytes:
    """Return the frame of an event, which also names its type outside the JSON."""
    kind: str = event["type"]
    return b"event: " + kind.encode() + b"\n" + data_frame(event)


async def send_events(
    receive: Receive,
    send: Send,
    produce: Callable[[Write], Awaitable[None]],
    headers: Mapping[str, str],
) -> None:
    """Send a whole event stream, whose frames `produce` writes; cancel it when the client leaves.

    `produce` may write from several tasks, which it must have ended when it returns.
    """
    all_headers = MutableHeaders(raw=[])
    all_headers.update(
        {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-store",
            "x-accel-buffering": "no",
            **headers,
        }
    )
    await send({"type": "http.response.start", "status": 200, "headers": all_headers.raw})
    await until_disconnect(receive, _Stream(send).run(produce))


class _Stream:
    """The body of one event stream.

    Owns: when something was last sent.
    Used from: the event loop, by the task of `run`, the one it starts, and those of `produce`.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._last_sent = 0.0

    async def run(self, produce: Callable[[Write], Awaitable[None]]) -> None:
        keeping_alive = asyncio.ensure_future(self._keep_alive())
        try:
            await produce(self._write)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            keeping_alive.cancel()

    async def _keep_alive(self) -> None:
        loop = asyncio.get_running_loop()
        self._last_sent = loop.time()
        while True:
            await asyncio.sleep(self._last_sent + KEEPALIVE_S - loop.time())
            if loop.time() - self._last_sent >= KEEPALIVE_S:
                await self._write(_COMMENT)

    async def _write(self, frame: bytes) -> None:
        await self._send({"type": "http.response.body", "body": frame, "more_body": True})
        self._last_sent = asyncio.get_running_loop().time()
