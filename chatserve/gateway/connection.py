"""One open WebSocket: `/v1/responses`.

Owns the connection from handshake to close, its tasks, and the decision to end it. What an event
does is decided elsewhere: `answering.py` runs creates, resumes and cancels, `lanes.py` orders
them, `outbox.py` holds what the peer has not taken.

                         PeerGone: it closed or vanished
    ACCEPTING ──> OPEN ──────────────────────────────────────────> CLOSED
                   │  │  Ending: this side has had enough             ^
                   │  └─────────────────────────────────> CLOSING ────┘
                   │                                        ^
                   └────────────> LEAVING ──────────────────┘
             Notice: its lifetime        nothing is in flight,
             is over, or we stop         or the deadline has come

LEAVING is OPEN without creates. Until the end of both, these tasks run in one task group, so that
the end of one is the end of all:

    receiver, one          reads frames; waits for nothing else, be it answer, store or peer
    writer, one            takes batches of frames from the outbox and sends them
    lane, one if busy      runs the creates of that lane, one after the other
    resume, cancel         one for each: replays and follows an answer, or ends it
    leave, one if LEAVING  says goodbye, waits for what is in flight, ends the connection

Invariants:
1. The receiver always runs. A frame that lies unread also holds back the pongs behind it, and the
   server below would take the peer for dead. So cancels and pings work during any generation, and
   while the store is slow. It gives way to the others after a few frames of a flood or a large one.
2. Only the writer sends. A producer that finds the outbox full stops reading its log, which costs
   its own reader time and the engine nothing.
3. A frame that makes no sense gets an error frame, and the socket stays open. This side ends it
   only at the end of its lifetime (1001) or of the gateway (1012), for a binary frame (1003), for
   many senseless frames in a row (4400), a peer that does not read (1013) and a fault of ours
   (1011).
4. Lanes and resumes read answers inside `async with`. When the group has ended, every answer has
   lost this reader, and the table in `readers.py` says what becomes of it.

Rejected: one task that both receives and streams (breaks 1); sending from where events are made
(no common bound, and frames of two tasks would interleave at every await); closing on a malformed
frame (one bad message would cost every answer on the socket); a task that waits for the lifetime
(thousands of idle sockets, each with one more task, for what a timer does).
"""

import asyncio
import logging
import time
from contextlib import AsyncExitStack, suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from chatserve import __version__
from chatserve.errors import ClientError, RateLimited, StoreError
from chatserve.gateway.access import watching_access
from chatserve.gateway.answering import Answering
from chatserve.gateway.auth import authenticate_socket
from chatserve.gateway.ending import Ending, PeerGone
from chatserve.gateway.identity import identity_of, is_authenticated
from chatserve.gateway.ids import new_id
from chatserve.gateway.in_flight import InFlight
from chatserve.gateway.leaving import Notice, noticing
from chatserve.gateway.outbox import Outbox
from chatserve.gateway.replies import as_client_error, error_response
from chatserve.gateway.security import refuse
from chatserve.gateway.server_protocols import SOCKET, SocketProtocol
from chatserve.gateway.services import Services
from chatserve.identity import Identity
from chatserve.protocol.auth import echoed_protocol
from chatserve.protocol.client_events import (
    BadEvent,
    Cancel,
    ClientEvent,
    Create,
    Ping,
    Resume,
    parse_client_event,
)
from chatserve.protocol.codes import CloseCode
from chatserve.store.keys import LOG_TTL_S

logger = logging.getLogger(__name__)

# How often a browser should ping; the server below pings every peer on its own.
HEARTBEAT_MS = 20_000

# What is handled at once before others get a turn: so many bytes, a frame counting as some more.
_BYTES_PER_TURN = 2**16
_BYTES_OF_FRAME = 2**12

# Senseless frames that are put up with.
_MAX_BAD_FRAMES = 100

# RFC 6455, section 7.1.5: what counts as the code of a connection that ended without one.
_VANISHED = 1006


async def serve_connection(websocket: WebSocket) -> None:
    """Serve one WebSocket from handshake to close."""
    services: Services = websocket.app.state.services
    async with AsyncExitStack() as lease:
        connection = Connection(websocket, services, lease)
        try:
            await connection.count_if_known()
        except (ClientError, StoreError) as error:
            reply = error_response(as_client_error(error), websocket.url.path)
            await refuse(reply, websocket.scope, websocket.receive, websocket.send)
            return
        await connection.run()


class Connection:
    """One WebSocket and everything that happens on it.

    Owns: the socket, its outbox and its task group.
    Used from: the event loop, for the length of one `run`.

    Args:
        websocket: The socket, before its upgrade.
        services: What an endpoint may use.
        lease: Where it is put that this connection counts for its tenant and its key.
    """

    def __init__(self, websocket: WebSocket, services: Services, lease: AsyncExitStack) -> None:
        self._websocket = websocket
        self._socket: SocketProtocol = websocket.scope["extensions"][SOCKET]
        self._services = services
        self._lease = lease
        self._is_known = is_authenticated(websocket)
        self._connection_id = new_id("conn_")
        self._outbox = Outbox(services.limits)
        self._notice: Notice | None = None
        self._num_bad_frames = 0

    async def count_if_known(self) -> None:
        """Count a connection whose handshake says whose it is, before it is upgraded.

        Raises:
            RateLimited: There are as many as there may be.
            StoreError: The store does not answer.
        """
        if self._is_known:
            await self._count(identity_of(self._websocket))

    async def run(self) -> None:
        """Accept, serve until either side ends the connection, and close if it was this one."""
        try:
            await self._websocket.accept(echoed_protocol(self._websocket.scope["subprotocols"]))
        except WebSocketDisconnect:
            return
        end = await self._serve()
        self._services.metrics.count_close(end.code)
        if isinstance(end, Ending):
            await self._close(end)

    async def _serve(self) -> Ending | PeerGone:
        """Find out who it is, serve, and return how it ended."""
        try:
            identity = await authenticate_socket(self._websocket, self._services)
            if not self._is_known:
                await self._count(identity)
        except (Ending, PeerGone) as end:
            return end
        except RateLimited as error:
            return Ending(CloseCode.TOO_MANY_CONNECTIONS, error.message)
        except StoreError:
            return Ending(CloseCode.TRY_AGAIN_LATER, "the store cannot be reached")
        with self._services.metrics.serving(self._outbox):
            return await self._until_end(identity)

    async def _count(self, identity: Identity) -> None:
        counted = self._services.connection_counts.counted(identity)
        await self._lease.enter_async_context(counted)

    async def _until_end(self, identity: Identity) -> Ending | PeerGone:
        """Serve, and return how it ended: by this side, or because the peer has left."""
        end: Ending | PeerGone
        try:
            async with asyncio.TaskGroup() as tasks:
                in_flight = InFlight(tasks)
                answering = Answering(self._services, self._outbox, in_flight, identity)
                self._lease.callback(answering.end)  # when nothing of it runs any more
                self._outbox.put_now(self._opened())
                tasks.create_task(self._write())

                def take_leave(notice: Notice) -> None:
                    self._notice = notice
                    tasks.create_task(self._leave(notice, in_flight))

                def end_now(ending: Ending) -> None:
                    tasks.create_task(_raise(ending))

                lifetime_s = self._services.config.connection_lifetime_s
                with noticing(self._services.drain, lifetime_s, take_leave):
                    async with watching_access(self._websocket, end_now):
                        await self._receive(answering)
        except* (PeerGone, Ending) as ends:
            end = _first(ends)
        except* Exception:
            logger.exception("connection %s failed", self._connection_id)
            end = Ending(CloseCode.INTERNAL_ERROR, "internal error")
        return end

    async def _receive(self, answering: Answering) -> None:
        """Read frames until the peer leaves; this only ever ends by an exception."""
        num_bytes = 0
        while True:
            if num_bytes >= _BYTES_PER_TURN:
                await asyncio.sleep(0)  # what has arrived already is received without waiting
                num_bytes = 0
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise PeerGone(message["code"])
            frame = message.get("text")
            if frame is None:
                raise Ending(CloseCode.BINARY_FRAME, "events are JSON in text frames")
            num_bytes += _BYTES_OF_FRAME + len(frame)
            event = parse_client_event(frame)
            self._check_sense(event)
            try:
                self._obey(event, frame, answering)
            except ClientError as error:
                answering.report(error, event.envelope)

    def _check_sense(self, event: ClientEvent) -> None:
        """Count senseless frames in a row; a peer that sends nothing else is not answered ever."""
        self._num_bad_frames = self._num_bad_frames + 1 if isinstance(event, BadEvent) else 0
        if self._num_bad_frames > _MAX_BAD_FRAMES:
            raise Ending(CloseCode.BAD_MESSAGES, f"{_MAX_BAD_FRAMES} frames in a row made no sense")

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
                if self._notice is not None:
                    raise self._notice.refusal
                answering.create(event)

    async def _write(self) -> None:
        """Send what is in the outbox; end the connection when the peer takes nothing for long."""
        while True:
            # In a call, so that an idle socket does not keep what it sent last.
            await self._write_batch(await self._outbox.get_batch())

    async def _write_batch(self, frames: list[bytes]) -> None:
        if not self._socket.is_writable:
            await self._until_writable()
        if not self._socket.write_frames(frames):
            raise PeerGone(_VANISHED)

    async def _until_writable(self) -> None:
        try:
            async with asyncio.timeout(self._services.limits.stall_s):
                await self._socket.until_writable()
        except TimeoutError:
            raise Ending(CloseCode.TRY_AGAIN_LATER, "the peer does not read") from None

    async def _leave(self, notice: Notice, in_flight: InFlight) -> None:
        """Tell the peer, let what is in flight end and be sent while there is time, and end."""
        self._outbox.put_now(notice.event())
        with suppress(TimeoutError):
            async with asyncio.timeout(notice.seconds):
                await in_flight.until_idle()
                await self._outbox.until_sent()
        raise notice.ending

    async def _close(self, ending: Ending) -> None:
        """Send the close frame, unless the peer reads nothing at all or has gone meanwhile.

        What the peer still sends is thrown away: one that writes first and reads then would wait
        for us, and we for it. The server below drops the transport soon after `run` has returned.
        """
        discarding = asyncio.create_task(self._discard())
        try:
            async with asyncio.timeout(self._services.limits.close_timeout_s):
                await self._websocket.close(ending.code, ending.reason)
        except (TimeoutError, WebSocketDisconnect):
            logger.info("connection %s ended before its close frame", self._connection_id)
        finally:
            discarding.cancel()

    async def _discard(self) -> None:
        while (await self._websocket.receive())["type"] != "websocket.disconnect":
            pass

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
                "lifetime_ms": round(1000 * self._services.config.connection_lifetime_s),
            },
        }


async def _raise(ending: Ending) -> None:
    raise ending


def _first(ends: BaseExceptionGroup[Ending | PeerGone]) -> Ending | PeerGone:
    first = ends.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _pong(ping: Ping) -> dict[str, Any]:
    return {"type": "chatserve:pong", "t": ping.t, "server_time_ms": time.time_ns() // 1_000_000}
