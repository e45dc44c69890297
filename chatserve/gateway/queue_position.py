"""Where requests stand in the queue, told while they wait.

Owns the looks into the queue: all that fall into the same quarter of a second are one round trip,
however many readers wait. Places are never numbered or stored: they are true for a moment, and only
a change of position is worth a frame.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from chatserve.engine.api import RequestId
from chatserve.errors import StoreError
from chatserve.gateway.generation import Answer
from chatserve.store.fair_queue import Place
from chatserve.store.queue import RequestQueue

logger = logging.getLogger(__name__)

POLL_S = 1.0
_ROUND_S = 0.25

Places = dict[RequestId, Place | None] | None
"""Where each request waits, None for one that does not; None at all where the store is away."""


@dataclass(slots=True)
class _Round:
    """One look for many. Mutable: requests join until it begins."""

    looking: asyncio.Task[Places]
    request_ids: set[RequestId] = field(default_factory=set)


class QueuePlaces:
    """The places of the requests that readers of this gateway wait for.

    Owns: the looks to come.
    Used from: the event loop.
    """

    def __init__(self, queue: RequestQueue) -> None:
        self._queue = queue
        self._rounds: dict[int, _Round] = {}

    async def tell(self, answer: Answer) -> AsyncIterator[Place]:
        """Yield where a request waits within its tenant, on every change, until it is claimed."""
        place, told = answer.place, None
        # The first of a line is mostly claimed at once, and worth no frame; where an answer that
        # was started elsewhere stands is not known yet.
        if place is None or place.position == 0:
            place = await self._look_again(answer, place)
        while place is not None:
            if place.position != told:
                told = place.position
                yield place
            place = await self._look_again(answer, place)

    async def aclose(self) -> None:
        looking = [each.looking for each in self._rounds.values()]
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)

    async def _look_again(self, answer: Answer, last: Place | None) -> Place | None:
        """Return the place that a request has in a while, the last one where nobody can say."""
        number = math.ceil((asyncio.get_running_loop().time() + POLL_S) / _ROUND_S)
        if number not in self._rounds:
            self._rounds[number] = _Round(asyncio.create_task(self._look(number)))
        joined = self._rounds[number]
        joined.request_ids.add(answer.record.response_id)
        places = await asyncio.shield(joined.looking)  # others wait for the same look
        return last if places is None else places[answer.record.response_id]

    async def _look(self, number: int) -> Places:
        await asyncio.sleep(number * _ROUND_S - asyncio.get_running_loop().time())
        request_ids = list(self._rounds.pop(number).request_ids)
        try:
            return await self._places(request_ids)
        except StoreError as error:
            logger.log(error.log_level, "places in the queue cannot be read: %s", error)
            return None

    async def _places(self, request_ids: Sequence[RequestId]) -> Places:
        places = await self._queue.positions(request_ids)
        return dict(zip(request_ids, places, strict=True))
