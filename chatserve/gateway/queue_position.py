"""Where a request stands in the queue, told while it waits.

Places are never numbered or stored: they are true for a moment, and only a change of position is
worth a frame.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from chatserve.errors import StoreError
from chatserve.gateway.generation import Answer
from chatserve.store.fair_queue import Place
from chatserve.store.queue import RequestQueue

logger = logging.getLogger(__name__)

POLL_S = 1.0


async def tell_place(queue: RequestQueue, answer: Answer) -> AsyncIterator[Place]:
    """Yield where a request waits within its tenant, on every change, until it is claimed."""
    place, told = answer.place, None
    # The first of a line is mostly claimed at once, and worth no frame; where an answer that was
    # started elsewhere stands is not known yet.
    if place is None or place.position == 0:
        place = await _look_again(queue, answer, place)
    while place is not None:
        if place.position != told:
            told = place.position
            yield place
        place = await _look_again(queue, answer, place)


async def _look_again(queue: RequestQueue, answer: Answer, last: Place | None) -> Place | None:
    await asyncio.sleep(POLL_S)
    try:
        return await queue.position(answer.record.response_id)
    except StoreError as error:
        logger.log(error.log_level, "a place in the queue cannot be read: %s", error)
        return last
