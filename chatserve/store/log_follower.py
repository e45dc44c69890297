"""One follower of a log: a bounded buffer between the feed and a consumer.

Owns the rule that makes following safe: an entry is taken in only if it is the next one. Any other
number, or a full buffer, ends being live, and the consumer goes back to the log itself. A smaller
number says that the log was cut and is written again from there, since no entry comes twice. Which
one is the first does not matter: what was before it is in the log, and the consumer says up to
where it has read that. Knows nothing of where entries come from.
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

    is_live: bool = True
    _next_sequence: int | None = None
    _buffer: deque[LogEntry] = field(default_factory=deque)
    _has_news: asyncio.Event = field(default_factory=asyncio.Event)
    _error: Exception | None = None

    def offer(self, entry: LogEntry) -> None:
        """Take an entry in, or stop being live when that cannot be done."""
        expected = self._next_sequence
        is_next = expected is None or entry.sequence_number == expected
        if not is_next or len(self._buffer) >= BUFFER_ENTRIES:
            self.end()
            return
        self._next_sequence = entry.sequence_number + 1
        self._buffer.append(entry)
        self._has_news.set()

    def end(self, error: Exception | None = None) -> None:
        """Stop being live; what is in the buffer can still be taken."""
        self.is_live = False
        self._error = error
        self._has_news.set()

    async def take(self, latest: LogEntry) -> LogEntry | None:
        """Return the entry after one that was read, or raise what ended this.

        None when it will not come: this is no longer live, or what came does not follow on.
        """
        while True:
            while self._buffer and self._buffer[0].sequence_number < latest.sequence_number:
                self._buffer.popleft()
            if self._buffer and self._buffer[0].sequence_number == latest.sequence_number:
                if self._buffer.popleft() != latest:  # another event has got its number
                    return None
            elif self._buffer:
                entry = self._buffer.popleft()
                return entry if entry.sequence_number == latest.sequence_number + 1 else None
            elif self._error:
                raise self._error
            elif not self.is_live:
                return None
            else:
                self._has_news.clear()
                await self._has_news.wait()
