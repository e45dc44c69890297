"""Where a request stands in the queue, told while it waits.

Positions are never numbered or stored: they are true for a moment, and only on change worth a
frame.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from chatserve.errors import StoreError
from chatserve.gateway.generation import Answer
from chatserve.store.queue import RequestQueue

logger = logging.getLogger(__name__)

POLL_S = 1.0


async def tell_position(queue: RequestQueue, answer: Answer) -> AsyncIterator[int]:
    """Yield how many requests are before this one, at first and on change, until it is claimed."""
    position: int | None = answer.position
    told: int | None = None
    while position is not None:
        if position != told:
            told = position
            yield position
        await asyncio.sleep(POLL_S)
        try:
            position = await queue.position(answer.record.response_id, answer.record.model)
        except StoreError as error:
            logger.warning("a queue position cannot be read: %s", error)
