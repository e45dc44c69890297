"""One open WebSocket: `/v1/responses`.

Owns the connection from handshake to close, its tasks, and the decision to end it. What an event
does is decided elsewhere: `answering.py` runs creates, resumes and cancels, `lanes.py` orders
them, `outbox.py` holds what the peer has not taken.

                         PeerGone: it closed or vanished
    ACCEPTING ──> OPEN ──────────────────────────────────────────> CLOSED
                   │     Ending: this side has had enough             ^
                   └────────────────────────────────────> CLOSING ────┘

While OPEN, these tasks run in one task group, so that the end of one is the end of all:

    receiver, one          reads frames; waits for nothing else, be it answer, store or peer
    writer, one            takes frames from the outbox and sends them
    lane, one if busy      runs the creates of that lane, one after the other
    resume, cancel         one for each: replays and follows an answer, or ends it

Invariants:
1. The receiver always runs. A frame that lies unread also holds back the pongs behind it, and the
   server below would take the peer for dead. So cancels and pings work during any generation, and
   while the store is slow.
2. Only the writer sends. A producer that finds the outbox full stops reading its log, which costs
   its own reader time and the engine nothing.
3. A frame that makes no sense gets an error frame, and the socket stays open. This side ends it
   only for a binary frame (1003), a peer that does not read (1013) and a fault of ours (1011).
4. Lanes and resumes read answers inside `async with`. When the group has ended, every answer has
   lost this reader, and the table in `readers.py` says what becomes of it.

Rejected: one task that both receives and streams (breaks 1); sending from where events are made
(no common bound, and frames of two tasks would interleave at every await); closing on a malformed
frame (one bad message would cost every answer on the socket).
"""

import asyncio
import logging
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from chatserve import __version__
from chatserve.errors import ClientError, NotFound
from chatserve.gateway.answering import Answering
from chatserve.gateway.ending import Ending, PeerGone
from chatserve.gateway.ids import new_id
from chatserve.gateway.outbox import Outbox
from chatserve.gateway.services import Services
from chatserve.protocol.client_events import (
    BadEvent,
    Cancel,
    ClientEvent,
    Create,
    Ping,
    Resume,
    parse_client_event,
)
from chatserve.protocol.codes import CloseCode, ErrorCode
from chatserve.store.keys import LOG_TTL_S

logger = logging.getLogger(__name__)

# How often a browser should ping; the server below pings every peer on its own.
HEARTBEAT_MS = 20_000


async def serve_connection(websocket: WebSocket) -> None:
    """Serve one WebSocket from handshake to close."""
    services: Services = websocket.app.state.services
    with services.metrics.connections.track_inprogress():
        await Connection(websocket, services).run()


async def refuse_http_responses(request: Request) -> Response:
    """Say to a client that speaks HTTP here what this path is for."""
    raise NotFound(
        "/v1/responses is a WebSocket; over HTTP use /v1/chat/completions",
        code=ErrorCode.WEBSOCKET_ONLY,
    )


class Connection:
    """One WebSocket and everything that happens on it.

    Owns: the socket, its outbox and its task group.
    Used from: the event loop, for the length of one `run`.
    """

    def __init__(self, websocket: WebSocket, services: Services) -> None:
        self._websocket = websocket
        self._services = services
        self._connection_id = new_id("conn_")
        self._outbox = Outbox(services.limits)

    async def run(self) -> None:
        """Accept, serve until either side ends the connection, and close if it was this one."""
        try:
            await self._websocket.accept()
        except WebSocketDisconnect:
            return
        ending = await self._until_end()
        if ending is not None:
            await self._close(ending)

    async def _until_end(self) -> Ending | None:
        """Serve, and return how this side ends the connection; None when the peer has left."""
        ending: Ending | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                answering = Answering(self._services, self._outbox, tasks)
                self._outbox.put_now(self._opened())
                tasks.create_task(self._write())
                await self._receive(answering)
        except* PeerGone:
            pass
        except* Ending as endings:
            ending = _first(endings)
        except* Exception:
            logger.exception("connection %s failed", self._connection_id)
            ending = Ending(CloseCode.INTERNAL_ERROR, "internal error")
        return ending

    async def _receive(self, answering: Answering) -> None:
        """Read frames until the peer leaves; this only ever ends by an exception."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise PeerGone(f"closed with {message.get('code')}")
            frame = message.get("text")
            if frame is None:
                raise Ending(CloseCode.BINARY_FRAME, "events are JSON in text frames")
            event = parse_client_event(frame)
            try:
                self._obey(event, frame, answering)
            except ClientError as error:
                answering.report(error, event.envelope)

    def _obey(self, event: ClientEvent, frame: str, answering: Answering) -> None:
        """Do what an event asks for; what takes time happens in tasks of its own."""
        match event:
            case BadEvent():
                raise event.error
            case Ping():
                self._outbox.put_now(_pong(event))
            case Cancel():
                answering.cancel(event)
            case Resume():
                answering.resume(event)
            case Create():
                answering.create(event, frame)

    async def _write(self) -> None:
        """Send what is in the outbox; end the connection when the peer takes nothing for long."""
        while True:
            frame = await self._outbox.get()
            try:
                # Blocks while the server's own buffer for this peer is full.
                async with asyncio.timeout(self._services.limits.stall_s):
                    await self._websocket.send_text(frame)
            except TimeoutError:
                raise Ending(CloseCode.TRY_AGAIN_LATER, "the peer does not read") from None
            except WebSocketDisconnect:
                raise PeerGone("it vanished while a frame was sent") from None

    async def _close(self, ending: Ending) -> None:
        """Send the close frame, unless the peer reads nothing at all or has gone meanwhile.

        The server below drops the transport when `run` returns.
        """
        try:
            async with asyncio.timeout(self._services.limits.close_timeout_s):
                await self._websocket.close(ending.code, ending.reason)
        except (TimeoutError, WebSocketDisconnect):
            logger.info("connection %s ended before its close frame", self._connection_id)

    def _opened(self) -> dict[str, Any]:
        """Return the first frame: what a client must know to behave well."""
        max_in_flight = self._services.limits.max_in_flight
        return {
            "type": "chatserve:connection.opened",
            "connection_id": self._connection_id,
            "server_version": __version__,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "resume_ttl_ms": LOG_TTL_S * 1000,
            "limits": {
                "max_message_bytes": self._services.config.max_message_bytes,
                "max_in_flight": max_in_flight,
                "max_lanes": max_in_flight,
                "lifetime_ms": None,
            },
        }


def _first(endings: BaseExceptionGroup[Ending]) -> Ending:
    first = endings.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _pong(ping: Ping) -> dict[str, Any]:
    return {"type": "chatserve:pong", "t": ping.t, "server_time_ms": time.time_ns() // 1_000_000}
