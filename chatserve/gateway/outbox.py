"""Frames on their way to one socket, bounded in bytes.

Owns the frames that the peer has not taken yet. Producers of answers wait above the high mark until
the low mark is reached, so that a slow reader stops its own logs from being read and nobody
else's; the logs are durable, so nothing is lost by waiting. Replies to the client's own messages
must not wait, since the receiver sends them; they have room above the mark, up to a limit that only
a peer reaches that writes and does not read.

The one idea: frames are taken in batches, whatever has gathered since the last one. A loaded
gateway so pays one task switch and one system call for many frames, an idle one sends each at once.
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
        # Made when somebody waits: an idle socket is to cost little, and most never need them.
        self._has_room: asyncio.Event | None = None
        self._is_sent: asyncio.Event | None = None
        self._is_full = False
        self._is_sending = False

    @property
    def num_bytes(self) -> int:
        """How many bytes wait."""
        return self._num_bytes

    async def put(self, event: dict[str, Any]) -> None:
        """Add an event once there is room. Cancelled while waiting, it has added nothing."""
        while self._is_full:
            self._has_room = self._has_room or asyncio.Event()
            await self._has_room.wait()
        self._add(orjson.dumps(event))

    def put_now(self, event: dict[str, Any]) -> None:
        """Add an event at once; raise Ending when even the room above the mark is used up."""
        frame = orjson.dumps(event)
        if self._num_bytes + len(frame) > self._limits.outbox_max_bytes:
            raise Ending(CloseCode.TRY_AGAIN_LATER, "too many frames wait to be read")
        self._add(frame)

    async def get_batch(self) -> list[bytes]:
        """Return the next frames, at least one, waiting for it.

        Whoever asks again has sent what it got before. A batch of several stays within the low
        mark: more would only lie in a buffer below instead of here. Cancelled while waiting, it
        has taken none.
        """
        if not self._frames:
            self._is_sending = False
            if self._is_sent is not None:
                self._is_sent.set()
                self._is_sent = None
            self._has_frames.clear()
            await self._has_frames.wait()
        batch = [self._frames.popleft()]
        size = len(batch[0])
        while self._frames and size + len(self._frames[0]) <= self._limits.outbox_low_bytes:
            batch.append(self._frames.popleft())
            size += len(batch[-1])
        self._num_bytes -= size
        if self._is_full and self._num_bytes <= self._limits.outbox_low_bytes:
            self._is_full = False
            if self._has_room is not None:
                self._has_room.set()
                self._has_room = None
        return batch

    async def until_sent(self) -> None:
        """Return once the server below has every frame."""
        while self._is_sending:
            self._is_sent = self._is_sent or asyncio.Event()
            await self._is_sent.wait()

    def _add(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._num_bytes += len(frame)
        self._has_frames.set()
        self._is_sending = True
        if self._num_bytes >= self._limits.outbox_high_bytes:
            self._is_full = True
