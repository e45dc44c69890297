"""Follows the logs of running answers: many readers, one blocking read.

Owns the one XREAD that a gateway process keeps open, and which logs it contains. Knows nothing of
sockets; a follower is an iterator that somebody drains, fast or not at all.

A follower is in one of two states, and numbers without gaps make changing between them safe:

    catching up     its own task reads pages of the log, as fast as the consumer drains them
    live            the blocking read puts entries into its bounded buffer (log_follower.py)

    catching up ──> live    when a page has reached the end of the log
    live ──> catching up    when its buffer was full, an entry came that does not follow on, or an
                            audit found the log shorter than what was read of it

Invariants:
1. A log is part of the blocking read exactly while it has a live follower. So a consumer that does
   not drain costs a full buffer and nothing more.
2. The read of a log starts at the lowest place that any of its live followers needs; the others
   drop what they have.
3. A lost connection is tried again for ever, in both states; a consumer notices only the delay.

To follow a new log at once, the read is woken through a stream of this process. Pub/sub was
rejected, since a message can be lost there; one read per follower, since connections are not free.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from chatserve.engine.api import RequestId
from chatserve.errors import NotFound, StoreError
from chatserve.store import keys
from chatserve.store.codec import Command
from chatserve.store.connection import Store
from chatserve.store.keys import Partition
from chatserve.store.log_follower import LogFollower
from chatserve.store.response_log import LogEntry, decode_entries, decode_entry, entry_id
from chatserve.store.streams import StreamEntry, read_streams

logger = logging.getLogger(__name__)

_PAGE_ENTRIES = 256
_READ_ENTRIES = 64
_BLOCK_MS = 2000

# A blocking read costs this process and the server some microseconds for every log in it, and one
# is over as soon as one log has news. A pause in proportion bounds the share of time that goes into
# it, and the delay: 10 ms where a thousand answers run, nothing to speak of where a few do.
_PAUSE_PER_LOG_S = 10e-6
_RETRY_FIRST_S = 0.05
_RETRY_MAX_S = 2.0

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Page:
    """Consecutive entries of a log, and the last entry that the log had at that moment."""

    entries: list[LogEntry]
    last: LogEntry


@dataclass(slots=True)
class _Tail:
    """One log of the blocking read: after which number it is read, and for whom."""

    position: int
    followers: set[LogFollower] = field(default_factory=set)


class LogReader:
    """The one reader of a partition's running answers in a gateway process.

    Owns: the blocking read and its wake-up stream, in two tasks between `start` and `aclose`.
    Used from: the event loop; `LogReaders` has one for each partition.
    """

    def __init__(
        self, store: Store, partition: Partition = keys.FIRST, *, audit_s: float = 10.0
    ) -> None:
        """Make a reader; every `audit_s` seconds it looks after the logs it follows."""
        self._commands = store.commands
        self._blocking = store.blocking
        self._log_prefix = partition.key(keys.LOG)
        self._wake_key = partition.key(keys.READER + secrets.token_hex(8))
        self._wake_cursor = "0-0"
        self._must_wake = asyncio.Event()
        self._tails: dict[RequestId, _Tail] = {}
        self._audit_s = audit_s
        self._next_audit = 0.0
        self._closed_by: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def num_logs(self) -> int:
        """How many logs the blocking read contains."""
        return len(self._tails)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._read_forever(), name="log-reader"),
            asyncio.create_task(self._wake_forever(), name="log-reader-wake"),
        ]

    def dismiss(self, error: Exception) -> None:
        """End all following with this error, and that of whoever comes later; the first one holds.

        A consumer that has not drained its buffer gets what is in it first.
        """
        self._closed_by = self._closed_by or error
        for request_id in list(self._tails):
            self._end_all(request_id, self._closed_by)

    async def aclose(self) -> None:
        """Stop reading; whoever still follows a log gets a StoreError."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._dismiss_stopped()  # a task cancelled before its first step has not done it
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def follow(
        self, request_id: RequestId, after: int = -1
    ) -> AsyncGenerator[LogEntry, None]:
        """Yield the entries numbered above `after`, as they come, up to the terminal one.

        Closing the generator, or cancelling its consumer at any await, gives up its place at once.
        A number that the log has not reached counts as its last one.

        Raises:
            NotFound: There is no such log, or it was deleted or has expired meanwhile.
            StoreError: The reader was closed.
        """
        position = after
        while True:
            page = await _until_answered(partial(self._read_page, request_id, position))
            for entry in page.entries:
                position = entry.sequence_number
                yield entry
            position = min(position, page.last.sequence_number)
            if position < page.last.sequence_number:
                continue
            if page.last.event.kind.is_terminal:
                return
            follower = self._join(request_id, position)
            try:
                while news := await follower.take():
                    position = news.sequence_number
                    yield news
                    if news.event.kind.is_terminal:
                        return
            finally:
                self._leave(request_id, follower)

    async def _read_page(self, request_id: RequestId, position: int) -> _Page:
        key = self._log_prefix + request_id
        replies = await self._commands.call_many(
            [
                ("XRANGE", key, entry_id(position + 1), "+", "COUNT", _PAGE_ENTRIES),
                self._last_entry(request_id),
            ]
        )
        page, last = (decode_entries(reply) for reply in replies)
        if not last:
            raise _log_not_found(request_id)
        return _Page(page, last[0])

    def _join(self, request_id: RequestId, position: int) -> LogFollower:
        if self._closed_by is not None:
            raise self._closed_by
        follower = LogFollower(next_sequence=position + 1)
        tail = self._tails.get(request_id)
        if tail is None or position < tail.position:
            tail = self._tails.setdefault(request_id, _Tail(position))
            tail.position = position
            self._must_wake.set()
        tail.followers.add(follower)
        return follower

    def _leave(self, request_id: RequestId, follower: LogFollower) -> None:
        tail = self._tails.get(request_id)
        if tail is None:
            return
        tail.followers.discard(follower)
        if not tail.followers:
            del self._tails[request_id]

    async def _read_forever(self) -> None:
        try:
            while True:
                await _until_answered(self._read_once)
                await _until_answered(self._maybe_audit)
                await asyncio.sleep(_PAUSE_PER_LOG_S * len(self._tails))
        finally:
            self._dismiss_stopped()

    async def _read_once(self) -> None:
        cursors = {
            self._log_prefix + log: entry_id(tail.position) for log, tail in self._tails.items()
        }
        cursors[self._wake_key] = self._wake_cursor
        entries = await read_streams(
            self._blocking, cursors, block_ms=_BLOCK_MS, count=_READ_ENTRIES
        )
        for wake in entries.pop(self._wake_key, []):
            self._wake_cursor = wake.entry_id
        for key, new_entries in entries.items():
            self._deliver(RequestId(key.removeprefix(self._log_prefix)), new_entries)

    def _deliver(self, request_id: RequestId, new_entries: list[StreamEntry]) -> None:
        tail = self._tails.get(request_id)
        if tail is None:  # the last follower left while the read was under way
            return
        for new_entry in new_entries:
            entry = decode_entry(new_entry)
            tail.position = entry.sequence_number
            for follower in tail.followers:
                follower.offer(entry)
        for follower in [f for f in tail.followers if not f.is_live]:
            self._leave(request_id, follower)

    async def _maybe_audit(self) -> None:
        """Look after logs of which no entry will tell: deleted, expired, or cut by a crash.

        A server that was killed may have lost its last second. The log is then written again from
        there, and whoever has read further would wait for numbers that may never come.
        """
        now = asyncio.get_running_loop().time()
        if now < self._next_audit:
            return
        self._next_audit = now + self._audit_s
        followed = list(self._tails)
        replies = await self._commands.call_many([self._last_entry(log) for log in followed])
        for request_id, reply in zip(followed, replies, strict=True):
            tail = self._tails.get(request_id)
            last = decode_entries(reply)
            if not last:
                self._end_all(request_id, _log_not_found(request_id))
            elif tail and last[0].sequence_number < tail.position:
                self._end_all(request_id)

    def _last_entry(self, request_id: RequestId) -> Command:
        return ("XREVRANGE", self._log_prefix + request_id, "+", "-", "COUNT", 1)

    def _dismiss_stopped(self) -> None:
        self.dismiss(StoreError("the log reader has stopped"))

    def _end_all(self, request_id: RequestId, error: Exception | None = None) -> None:
        tail = self._tails.pop(request_id, None)
        for follower in tail.followers if tail else ():
            follower.end(error)

    async def _wake_forever(self) -> None:
        """Wake the blocking read whenever it must start over with other logs.

        Followers only set a flag, so that being cancelled there loses nothing.
        """
        while True:
            await self._must_wake.wait()
            self._must_wake.clear()
            await _until_answered(self._wake)

    async def _wake(self) -> None:
        await self._commands.call_many(
            [
                ("XADD", self._wake_key, "MAXLEN", 1, "*", "n", 1),
                ("EXPIRE", self._wake_key, keys.IDLE_TTL_S),
            ]
        )


async def _until_answered(ask: Callable[[], Awaitable[_T]]) -> _T:
    """Return what `ask` returns, asking again with growing pauses while the store fails."""
    pause_s = _RETRY_FIRST_S
    while True:
        try:
            return await ask()
        except StoreError as error:
            logger.warning("reading logs: %s; trying again in %.2f s", error, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _RETRY_MAX_S)


def _log_not_found(request_id: RequestId) -> NotFound:
    message = f"there is no log of response {request_id!r}"
    return NotFound(message, code="response_not_found", param="response_id")
