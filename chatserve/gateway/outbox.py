"""Frames on their way to one socket, bounded in bytes.

Owns the frames that the peer has not taken yet. Producers of answers wait above the high mark until
the low mark is reached, so that a slow reader stops its own logs from being read and nobody
else's; the logs are durable, so nothing is lost by waiting. Replies to the client's own messages
must not wait, since the receiver sends them; they have room above the mark, up to a limit that only
a peer reaches that writes and does not read.
"""

import asyncio
from collections import deque
from typing import Any

import orjson

from chatserve.gateway.connection_limits import ConnectionLimits
from chatserve.gateway.ending import Ending
from chatserve.protocol.codes import CloseCode


class Outbox:
    """A bounded queue between many producers and the one task that writes to the socket.

    Owns: the waiting frames and the count of their bytes.
    Used from: the event loop.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._frames: deque[bytes] = deque()
        self._num_bytes = 0
        self._has_frames = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def put(self, event: dict[str, Any]) -> None:
        """Add an event once there is room. Cancelled while waiting, it has added nothing."""
        await self._has_room.wait()
        self._add(orjson.dumps(event))

    def put_now(self, event: dict[str, Any]) -> None:
        """Add an event at once; raise Ending when even the room above the mark is used up."""
        frame = orjson.dumps(event)
        if self._num_bytes + len(frame) > self._limits.outbox_max_bytes:
            raise Ending(CloseCode.TRY_AGAIN_LATER, "too many frames wait to be read")
        self._add(frame)

    async def get(self) -> str:
        """Return the next frame, waiting for one. Cancelled while waiting, it has taken none."""
        while not self._frames:
            self._has_frames.clear()
            await self._has_frames.wait()
        frame = self._frames.popleft()
        self._num_bytes -= len(frame)
        if self._num_bytes <= self._limits.outbox_low_bytes:
            self._has_room.set()
        return frame.decode()

    def _add(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._num_bytes += len(frame)
        self._has_frames.set()
        if self._num_bytes >= self._limits.outbox_high_bytes:
            self._has_room.clear()
