"""uvicorn's two protocols, with the bounds and the speed that this service needs of them.

Owns what happens below the application on one TCP connection. Four things differ from uvicorn:

1. A request line with its headers must arrive in a bounded time, the first bytes included. uvicorn
   waits for ever for a peer that says nothing, or a byte now and then, be it of the headers or of
   a body that has been refused already.
2. What an ended WebSocket has not delivered after a while is dropped with its connection. Closing
   alone waits for a peer that has vanished until the kernel gives it up, a quarter of an hour.
3. An HTTP client that takes nothing of its reply for a while is dropped. An event stream otherwise
   waits for it as long as the kernel does, or its peer's kernel acknowledges. On a WebSocket the
   application sees to that, since it has a close frame to send.
4. A handshake is answered. uvicorn parses it twice, and waits for ever for the rest of one that its
   second parser refuses, whose limits are narrower. What a peer sends ahead of our answer is kept
   until then; uvicorn drops a part of it and fails at another.
5. The application finds the protocol under `SOCKET` in its scope, and may write a batch of text
   frames with one system call, without the layers in between.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from chatserve.protocol.codes import CloseCode

SOCKET = "chatserve.socket"
"""The extension of a WebSocket's scope that is its `SocketProtocol`."""

HEADER_TIMEOUT_S = 15.0
LINGER_S = 5.0
STALL_S = 30.0

_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

# RFC 6455, section 5.2: the last frame of a message (0x80), and it is text (0x01).
_TEXT = b"\x81"


class HttpProtocol(H11Protocol):
    """HTTP/1.1 whose headers arrive in time, and whose replies are taken.

    Owns: the timer of the request that is awaited, and that of a peer whose buffer is full.
    Used from: the event loop.
    """

    _header_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Take bytes in; those of a next request start its time, its last header ends it."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            if self._header_timer is None and self.transport.get_protocol() is self:
                self._await_headers()
        else:
            self._stop_waiting()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._stop_waiting()
        early, _ = self.conn.trailing_data
        super().handle_websocket_upgrade(event)
        cast(SocketProtocol, self.transport.get_protocol()).end_of_handshake(early)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_progress()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_awaiting_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_awaiting_progress()
        super().connection_lost(exc)

    def _await_progress(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._stall_timer = self.loop.call_later(STALL_S, self._check_progress, size)

    def _check_progress(self, size_before: int) -> None:
        """Drop a peer that has taken nothing since its buffer had this size."""
        if self.transport.get_write_buffer_size() < size_before:
            self._await_progress()
        else:
            self.transport.abort()

    def _stop_awaiting_progress(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _await_headers(self) -> None:
        self._header_timer = self.loop.call_later(HEADER_TIMEOUT_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


class SocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket that writes in batches and does not outlive its end for long.

    Owns: what arrived ahead of the answer to its handshake.
    Used from: the event loop.
    """

    _early = b""

    def end_of_handshake(self, early: bytes) -> None:
        """Take note that the handshake has been received whole, and what came right behind it.

        What is no request by now never will be one: it is refused. Otherwise nothing is read until
        the application has accepted, as frames mean nothing before.
        """
        if self.handshake_initiated:
            self._early = early
            self.transport.pause_reading()
        else:
            self._refuse()

    @property
    def is_writable(self) -> bool:
        """The buffer of this peer has room; so it has when the peer is gone."""
        return self.writable.is_set()

    async def until_writable(self) -> None:
        """Return once the peer has taken enough, or is gone."""
        await self.writable.wait()

    def write_frames(self, payloads: Sequence[bytes]) -> bool:
        """Write text frames, each UTF-8; False if the connection has ended."""
        if self.disconnected or self.close_sent or self.transport.is_closing():
            return False
        self.transport.write(encode_text_frames(payloads))
        return True

    async def run_asgi(self) -> None:
        cast(dict[str, Any], self.scope["extensions"])[SOCKET] = self
        await super().run_asgi()
        self._drop_later()

    async def send(self, message: ASGISendEvent) -> None:
        """Send what the application has to say; once it has accepted, frames are read."""
        await super().send(message)
        if message["type"] == "websocket.accept" and not self.transport.is_closing():
            self.transport.resume_reading()
            early, self._early = self._early, b""
            if early:
                self.data_received(early)

    def keepalive_timeout(self) -> None:
        self.queue.put_nowait({"type": "websocket.disconnect", "code": CloseCode.INTERNAL_ERROR})
        super().keepalive_timeout()
        self._drop_later()

    def _refuse(self) -> None:
        """Send what the parser has to say of a handshake that it did not like, and close."""
        refusal = b"".join(self.conn.data_to_send())
        self.transport.write(refusal or _BAD_REQUEST)
        self.handshake_complete = self.close_sent = True
        self.transport.close()
        self._drop_later()

    def _drop_later(self) -> None:
        self.loop.call_later(LINGER_S, self.transport.abort)


def encode_text_frames(payloads: Sequence[bytes]) -> bytes:
    """Return text frames as a server sends them: whole messages, unmasked."""
    parts: list[bytes] = []
    for payload in payloads:
        size = len(payload)
        if size < 126:
            head = _TEXT + bytes((size,))
        elif size < 2**16:
            head = _TEXT + b"\x7e" + size.to_bytes(2, "big")
        else:
            head = _TEXT + b"\x7f" + size.to_bytes(8, "big")
        parts += head, payload
    return b"".join(parts)
