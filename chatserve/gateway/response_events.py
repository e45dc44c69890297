"""What clients see of an answer: its events from wherever they stopped, or one object.

Owns the three sources of it and their order: the log, the snapshot that is left when the log is
gone, and not found. Every transport reads through here, so all of them show the same events under
the same numbers. Knows no transport and starts nothing.

A store that has lost the end of a log gives the numbers of the lost events to others. A reader that
has lost ones is told so by a snapshot of the text as it is now, once it goes beyond them.
"""

from collections.abc import AsyncGenerator
from typing import Any

from chatserve.errors import NotFound
from chatserve.gateway.generation import Answer
from chatserve.gateway.history import no_response
from chatserve.gateway.responses import head_of
from chatserve.protocol.events import (
    ResponseHead,
    ResponseProjector,
    final_response,
    gap_event,
    gap_events,
)
from chatserve.store.connection import Store
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import ResponseRecord

Event = dict[str, Any]


async def events_of(store: Store, answer: Answer, after: int = -1) -> AsyncGenerator[Event, None]:
    """Yield the events numbered above `after`, as they come, up to the terminal one.

    That one comes also to whoever has it, so that every reader learns that there is no more.

    Raises:
        NotFound: The log is gone, and so is the response, or it never ended.
        StoreError: The store does not answer.
    """
    reader = _Reader(head_of(answer.record), after, await _has_lost(store, answer.record, after))
    try:
        async for entry in answer.entries:
            for event in reader.read(entry):
                yield event
    except NotFound:
        for event in await _snapshot(store, answer.record, reader.after):
            yield event


class _Reader:
    """One reader of an answer: what it has, and what an entry of the log is to it.

    Owns: the number of the last event that the reader has, and whether the log has lost that.
    Used from: the event loop, by one task.
    """

    def __init__(self, head: ResponseHead, after: int, has_lost: bool) -> None:
        self.after = after
        self._head = head
        self._projector = ResponseProjector(head)
        self._has_lost = has_lost
        self._last_read = -1

    def read(self, entry: LogEntry) -> list[Event]:
        """Return the events for the log's next entry, none while the reader has had them."""
        number = entry.sequence_number
        if number <= self._last_read:  # the log was cut, and is read again from its beginning
            self._projector = ResponseProjector(self._head)
            self._has_lost = self.after >= 0
        self._last_read = number
        event = self._projector.project(number, entry.event)
        if self._has_lost:
            return self._make_up(event, is_last=entry.event.kind.is_terminal)
        # Whoever has the last event already gets it once more, so that every resume ends with one.
        if number <= self.after and not entry.event.kind.is_terminal:
            return []
        self.after = number
        return [event]

    def _make_up(self, event: Event, *, is_last: bool) -> list[Event]:
        """Return a snapshot, instead of the first event beyond those that the reader has.

        The last event of all comes after one in any case, be its number as small as it may.
        """
        number: int = event["sequence_number"]
        if number <= self.after and not is_last:
            return []
        self.after, self._has_lost = number, False
        last = number - 1 if is_last else number
        gap = gap_event(self._head, self._projector.text, 0, last)
        return [gap, event] if is_last else [gap]


async def response_object(store: Store, record: ResponseRecord) -> Event:
    """Return a response as it is now, with the text so far while it is in flight."""
    if record.outcome is not None:
        return final_response(head_of(record), record.output_text, record.outcome)
    projector = ResponseProjector(head_of(record))
    for entry in await store.log.read(record.response_id):
        projector.project(entry.sequence_number, entry.event)
        if entry.event.outcome is not None and entry.event.kind.is_terminal:
            return projector.final_response(entry.event.outcome)  # it has just ended
    return projector.response_so_far()


async def _has_lost(store: Store, record: ResponseRecord, after: int) -> bool:
    """Return whether a log has lost the event that its reader had last."""
    if after < 0:
        return False
    last = await store.log.last_number(record.response_id)
    return last is not None and last < after


async def _snapshot(store: Store, record: ResponseRecord, after: int) -> list[Event]:
    """Return the events that stand for a log that is gone."""
    latest = await store.responses.get(record.response_id)  # it may have ended since it was read
    if latest is None or latest.outcome is None:
        raise no_response(record.response_id)
    assert latest.last_sequence is not None, f"{record.response_id} has ended without a number"
    return gap_events(
        head_of(latest),
        latest.output_text,
        latest.outcome,
        starting_after=after,
        last_sequence=latest.last_sequence,
    )
