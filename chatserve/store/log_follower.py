"""One live follower of a log: a bounded buffer between the blocking read and a consumer.

Owns the rule that makes following safe: an entry is taken only if it is the next one. A smaller
number is a repetition and is dropped; a larger one, or a full buffer, ends being live, and the
consumer goes back to the log itself. Knows nothing of where entries come from.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from chatserve.store.response_log import LogEntry

BUFFER_ENTRIES = 256


@dataclass(slots=True, eq=False)
class LogFollower:
    """Entries that were given and not taken yet.

    Owns: its buffer.
    Used from: the event loop; `offer` and `end` by the reader, `take` by one consumer.
    """

    next_sequence: int
    is_live: bool = True
    _buffer: deque[LogEntry] = field(default_factory=deque)
    _has_news: asyncio.Event = field(default_factory=asyncio.Event)
    _error: Exception | None = None

    def offer(self, entry: LogEntry) -> None:
        """Take an entry in, or stop being live when that cannot be done."""
        if entry.sequence_number < self.next_sequence:
            return
        if entry.sequence_number > self.next_sequence or len(self._buffer) >= BUFFER_ENTRIES:
            self.end()
            return
        self.next_sequence += 1
        self._buffer.append(entry)
        self._has_news.set()

    def end(self, error: Exception | None = None) -> None:
        """Stop being live; what is in the buffer can still be taken."""
        self.is_live = False
        self._error = error
        self._has_news.set()

    async def take(self) -> LogEntry | None:
        """Return the next entry, None when it is no longer live, or raise what ended it."""
        while not self._buffer:
            if self._error:
                raise self._error
            if not self.is_live:
                return None
            self._has_news.clear()
            await self._has_news.wait()
        return self._buffer.popleft()
