"""Follows the logs of running answers: many readers, one blocking read.

Owns which logs a gateway process follows. Knows nothing of sockets; a follower is an iterator that
somebody drains, fast or not at all. The one blocking read is that of the feed (log_feed.py), to
which the events of all followed logs are copied.

A follower is in one of two states, and numbers without gaps make changing between them safe:

    catching up     its own task reads pages of the log, as fast as the consumer drains them, while
                    the feed puts what comes into its bounded buffer (log_follower.py)
    live            it takes from the buffer

    catching up ──> live    when the pages have reached what was the last event as copying began
    live ──> catching up    when its buffer was full, an entry came that does not follow on, the
                            feed has lost some, or an audit found the log shorter than what was
                            read of it, or longer than what the feed brings

A store that was killed, or replaced by a replica that was behind, has lost the end of a log, and
other events get the numbers of the lost ones. So whoever goes back to the log looks whether it
still has what was read last, and reads it from its first entry where it has not.

Invariants:
1. A log is copied to the feed while it has a follower whose buffer is not full. So a consumer that
   does not drain costs a full buffer and nothing more.
2. A follower is in place before the copying begins, so that every event is in the log by then or
   comes through the feed. How fast events come is no matter.
3. A lost connection is tried again for ever, in both states; a consumer notices only the delay.

Pub/sub was rejected, since a message can be lost there unnoticed; one blocking read per follower,
since connections are not free; one read over all logs, since each costs it time without any news.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from chatserve.engine.api import RequestId
from chatserve.error_codes import ErrorCode
from chatserve.errors import NotFound, StoreError
from chatserve.store import keys
from chatserve.store.codec import Command
from chatserve.store.connection import Store
from chatserve.store.keys import Partition
from chatserve.store.log_feed import LogFeed
from chatserve.store.log_follower import LogFollower
from chatserve.store.response_log import LogEntry, decode_entries, entry_id

logger = logging.getLogger(__name__)

_PAGE_ENTRIES = 256

_PAUSE_S = 0.001
"""Between two reads: what comes meanwhile comes with one read, and one wake-up of the process."""

_RENEW_S = 10.0
_RETRY_FIRST_S = 0.05
_RETRY_MAX_S = 2.0

_T = TypeVar("_T")


@dataclass(slots=True)
class _Tail:
    """One log that is followed: the last number seen of it, by whom, and whether it has ended."""

    position: int = -1
    followers: set[LogFollower] = field(default_factory=set)
    has_ended: bool = False
    audited: int = -1

    def audit(self, last: int) -> bool:
        """Return whether all that was seen is in the log, and what was in it before is seen."""
        has_missed = self.position < self.audited
        self.audited = last
        return self.position <= last and not has_missed

    def note(self, entry: LogEntry) -> None:
        self.position = max(self.position, entry.sequence_number)
        self.has_ended = self.has_ended or entry.event.kind.is_terminal


class LogReader:
    """The one reader of a partition's running answers in a gateway process.

    Owns: the feed and its followers, in two tasks between `start` and `aclose`.
    Used from: the event loop; `LogReaders` has one for each partition.
    """

    def __init__(
        self, store: Store, partition: Partition = keys.FIRST, *, audit_s: float = 10.0
    ) -> None:
        """Make a reader; every `audit_s` seconds it looks after the logs it follows."""
        self._commands = store.commands
        self._log_prefix = partition.key(keys.LOG)
        self._feed = LogFeed(store, partition)
        self._has_feed = asyncio.Event()
        self._tails: dict[RequestId, _Tail] = {}
        self._left: set[RequestId] = set()
        self._has_left = asyncio.Event()
        self._removing = asyncio.Lock()
        self._audit_s = audit_s
        self._next_audit = self._next_renewal = 0.0
        self._closed_by: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def num_logs(self) -> int:
        """How many logs are followed live."""
        return len(self._tails)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._read_forever(), name="log-reader"),
            asyncio.create_task(self._remove_forever(), name="log-reader-remove"),
        ]

    def dismiss(self, error: Exception) -> None:
        """End all following with this error, and that of whoever comes later; the first one holds.

        A consumer that has not drained its buffer gets what is in it first.
        """
        self._closed_by = self._closed_by or error
        self._has_feed.set()  # whoever waits for it shall see that there will be none
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

        Where the store has lost some that were yielded, all are yielded again from number 0. That
        is the only number that ever comes after a greater one.

        Closing the generator, or cancelling its consumer at any await, gives up its place at once.
        A number that the log has not reached counts as its last one.

        Raises:
            NotFound: There is no such log, or it was deleted or has expired meanwhile.
            StoreError: The reader was closed.
        """
        latest: LogEntry | None = None
        while True:
            follower = self._join(request_id)
            try:
                last = await self._begin(request_id, follower)
                position = after if latest is None else await self._kept(request_id, latest)
                position = min(position, last.sequence_number)
                while position < last.sequence_number:
                    page = await self._read_page(request_id, position)
                    if not page:  # it has become shorter, or is gone
                        break
                    for latest in page:
                        position = latest.sequence_number
                        yield latest
                        if latest.event.kind.is_terminal:
                            return
                if position < last.sequence_number:
                    continue
                if last.event.kind.is_terminal:
                    return
                latest = latest or last
                while news := await follower.take(latest):
                    latest = news
                    yield latest
                    if latest.event.kind.is_terminal:
                        return
            finally:
                self._leave(request_id, follower)

    async def _begin(self, request_id: RequestId, follower: LogFollower) -> LogEntry:
        """Have a log copied to the feed for a follower, and return its last event until then."""
        await self._has_feed.wait()
        self._check_open()
        while request_id in self._left:  # a removal on its way would undo this
            async with self._removing:
                self._left.discard(request_id)
        last = await self._answer_to(partial(self._feed.add, request_id))
        if last is None:
            raise _log_not_found(request_id)
        tail = self._tails.get(request_id)
        if tail is not None:  # else all its followers, this one too, were ended meanwhile
            tail.note(last)
        return last

    async def _kept(self, request_id: RequestId, latest: LogEntry) -> int:
        """Return the number of an entry that was read, or -1 if the log has lost it."""
        number = latest.sequence_number
        at = entry_id(number)
        return number if await self._read_range(request_id, at, at) == [latest] else -1

    async def _read_page(self, request_id: RequestId, position: int) -> list[LogEntry]:
        return await self._read_range(request_id, entry_id(position + 1), "+")

    async def _read_range(self, request_id: RequestId, first: str, last: str) -> list[LogEntry]:
        command = ("XRANGE", self._log_prefix + request_id, first, last, "COUNT", _PAGE_ENTRIES)
        return decode_entries(await self._answer_to(partial(self._commands.call, *command)))

    async def _answer_to(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `ask` returns for a follower, who may wait for it until this is closed."""
        return await _until_answered(ask, self._check_open)

    def _check_open(self) -> None:
        if self._closed_by is not None:
            raise self._closed_by

    def _join(self, request_id: RequestId) -> LogFollower:
        self._check_open()
        follower = LogFollower()
        self._tails.setdefault(request_id, _Tail()).followers.add(follower)
        return follower

    def _leave(self, request_id: RequestId, follower: LogFollower) -> None:
        tail = self._tails.get(request_id)
        if tail is None:
            return
        tail.followers.discard(follower)
        if not tail.followers:
            del self._tails[request_id]
            if not tail.has_ended:
                self._left.add(request_id)
                self._has_left.set()

    async def _read_forever(self) -> None:
        try:
            while True:
                await _until_answered(self._maybe_renew)
                await _until_answered(self._read_once)
                await _until_answered(self._maybe_audit)
                await asyncio.sleep(_PAUSE_S)
        finally:
            self._dismiss_stopped()

    async def _maybe_renew(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._next_renewal:
            return
        if not await self._feed.renew():
            self._catch_up()
        self._has_feed.set()
        self._next_renewal = now + _RENEW_S

    async def _read_once(self) -> None:
        news = await self._feed.read()
        if news.has_lost:
            self._catch_up()
            return
        for request_id, entry in news.events:
            self._deliver(request_id, entry)

    def _deliver(self, request_id: RequestId, entry: LogEntry) -> None:
        tail = self._tails.get(request_id)
        if tail is None:  # the last follower has left, and the copying has not ended yet
            return
        tail.note(entry)
        for follower in tail.followers:
            follower.offer(entry)
        for follower in [f for f in tail.followers if not f.is_live]:
            self._leave(request_id, follower)

    def _catch_up(self) -> None:
        """Have every follower read its log itself, since the feed has lost something."""
        for request_id in list(self._tails):
            self._end_all(request_id)

    async def _maybe_audit(self) -> None:
        """Look after logs of which no entry will tell: deleted, expired, or cut by a crash.

        A server that was killed may have lost its last second. The log is then written again from
        there, and whoever has read further would wait for numbers that may never come; or it is
        no longer copied to this feed.
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
            elif tail and not tail.audit(last[0].sequence_number):
                self._end_all(request_id)

    def _last_entry(self, request_id: RequestId) -> Command:
        return ("XREVRANGE", self._log_prefix + request_id, "+", "-", "COUNT", 1)

    def _dismiss_stopped(self) -> None:
        self.dismiss(StoreError("the log reader has stopped"))

    def _end_all(self, request_id: RequestId, error: Exception | None = None) -> None:
        tail = self._tails.pop(request_id, None)
        for follower in tail.followers if tail else ():
            follower.end(error)

    async def _remove_forever(self) -> None:
        """End the copying of logs that nobody follows any more, many at a time.

        Followers only leave a note, so that being cancelled there loses nothing.
        """
        while True:
            await self._has_left.wait()
            self._has_left.clear()
            async with self._removing:
                noted = list(self._left)
                left = [each for each in noted if each not in self._tails]
                await _until_answered(partial(self._feed.remove, left))
                self._left.difference_update(noted)


async def _until_answered(
    ask: Callable[[], Awaitable[_T]], check: Callable[[], None] = lambda: None
) -> _T:
    """Return what `ask` returns, asking again with growing pauses while the store fails.

    Before each time `check` may raise what ends this.
    """
    pause_s = _RETRY_FIRST_S
    while True:
        check()
        try:
            return await ask()
        except StoreError as error:
            logger.log(error.log_level, "reading logs: %s; trying again in %.2f s", error, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _RETRY_MAX_S)


def _log_not_found(request_id: RequestId) -> NotFound:
    message = f"there is no log of response {request_id!r}"
    return NotFound(message, code=ErrorCode.RESPONSE_NOT_FOUND, param="response_id")
