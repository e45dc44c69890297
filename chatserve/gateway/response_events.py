"""What clients see of an answer: its events from wherever they stopped, or one object.

Owns the three sources of it and their order: the log, the snapshot that is left when the log is
gone, and not found. Every transport reads through here, so all of them show the same events under
the same numbers. Knows no transport and starts nothing.
"""

from collections.abc import AsyncGenerator
from typing import Any

from chatserve.errors import NotFound
from chatserve.gateway.generation import Answer
from chatserve.gateway.history import no_response
from chatserve.gateway.responses import head_of
from chatserve.protocol.events import ResponseProjector, final_response, gap_events
from chatserve.store.connection import Store
from chatserve.store.responses import ResponseRecord

Event = dict[str, Any]


async def events_of(store: Store, answer: Answer, after: int = -1) -> AsyncGenerator[Event, None]:
    """Yield the events numbered above `after`, as they come, up to the terminal one.

    That one comes also to whoever has it, so that every reader learns that there is no more.

    Raises:
        NotFound: The log is gone, and so is the response, or it never ended.
        StoreError: The store does not answer.
    """
    projector = ResponseProjector(head_of(answer.record))
    try:
        async for entry in answer.entries:
            event = projector.project(entry.sequence_number, entry.event)
            if entry.sequence_number > after or entry.event.kind.is_terminal:
                after = entry.sequence_number
                yield event
    except NotFound:
        for event in await _snapshot(store, answer.record, after):
            yield event


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
