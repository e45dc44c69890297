"""A copy of the events that one gateway follows: one stream, however many logs they come from.

Owns the stream and which logs are copied to it. A feed is for speed alone, and may lose events:
when its reader is behind by more than it holds, or has renewed it too late. Then it says so, and
what was lost is in the logs.

A read of many streams costs the server and the reader some microseconds for each of them, news or
not, so that with a thousand answers most of the time went into reading nothing. The script that
appends to a log knows its feeds, and the copy costs it one command.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from chatserve.engine.api import RequestId
from chatserve.store import keys, scripts
from chatserve.store.codec import Command
from chatserve.store.connection import Store
from chatserve.store.keys import Partition
from chatserve.store.response_log import LogEntry, decode_entries, decode_event
from chatserve.store.streams import StreamEntry, read_streams

TTL_S = 60
"""How long a feed lives whose reader does not renew it."""

_BLOCK_MS = 2000
_READ_ENTRIES = 512


@dataclass(frozen=True, slots=True)
class News:
    """Events of any logs, in the order of each. Where some were lost, those of no log are."""

    events: Sequence[tuple[RequestId, LogEntry]]
    has_lost: bool = False


class LogFeed:
    """The feed of one gateway in one partition.

    Owns: its stream, and how far it has been read.
    Used from: the event loop; `read` by one task.
    """

    def __init__(self, store: Store, partition: Partition) -> None:
        self._commands = store.commands
        self._blocking = store.blocking
        self._root = partition.root
        self._name = secrets.token_hex(8)
        self._key = partition.key(keys.FEED + self._name)
        self._cursor = "0-0"

    async def add(self, request_id: RequestId) -> LogEntry | None:
        """Have a log copied from now on, and return its last event until now.

        None when there is no such log.
        """
        last = await self._commands.run(scripts.FOLLOW, self._root, request_id, self._name)
        return decode_entries([last])[0] if last else None

    async def remove(self, request_ids: Sequence[RequestId]) -> None:
        """Have logs copied no more; what is on its way comes all the same."""
        calls: list[Command] = [(self._root, each, self._name) for each in request_ids]
        await self._commands.run_many(scripts.UNFOLLOW, calls)

    async def renew(self) -> bool:
        """Let the feed live on; False when it was gone, and was made anew."""
        if await self._commands.call("EXPIRE", self._key, TTL_S):
            return True
        await self._commands.call_many(
            [("XADD", self._key, "*", "begin", 1), ("EXPIRE", self._key, TTL_S)]
        )
        return False

    async def read(self) -> News:
        """Return what has come since the last time, waiting for a while where that is nothing."""
        before = self._cursor
        read = await read_streams(
            self._blocking, {self._key: before}, block_ms=_BLOCK_MS, count=_READ_ENTRIES
        )
        entries = read.get(self._key, [])
        if not entries:
            return News(())
        self._cursor = entries[-1].entry_id
        # Only one that is far behind can have been overtaken by the trimming.
        has_lost = len(entries) == _READ_ENTRIES and await self._begins_after(before)
        return News([_decode(entry) for entry in entries if "log" in entry.fields], has_lost)

    async def _begins_after(self, entry_id: str) -> bool:
        """Return whether entries behind this one have been trimmed."""
        first = await self._commands.call("XRANGE", self._key, "-", "+", "COUNT", 1)
        return not first or _number(first[0][0]) > _number(entry_id)


def _decode(entry: StreamEntry) -> tuple[RequestId, LogEntry]:
    fields = entry.fields
    return RequestId(fields["log"]), decode_event(int(fields["number"]), fields)


def _number(entry_id: str) -> tuple[int, int]:
    milliseconds, _, counter = entry_id.partition("-")
    return int(milliseconds), int(counter)
