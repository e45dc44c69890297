"""What becomes of an answer between its events, told to its readers.

Owns the looks at requests in flight: all that fall into the same quarter of a second are one round
trip, however many readers wait. Updates are never numbered or stored: they are true for a moment,
and only a change is worth a frame.

    chatserve:queue.updated    it waits in its line
    chatserve:prefill.updated  its prompt takes more than one step
    chatserve:worker.lost      its worker is silent or gone, and nothing has come since

A reader that hears of the answer itself costs no look: only after a silence is there one, and what
it finds is dropped if an event has come meanwhile. So an update never contradicts the events.
"""

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from chatserve.engine.api import EventKind, RequestId
from chatserve.errors import StoreError
from chatserve.gateway.generation import Answer
from chatserve.gateway.models import ServedModels
from chatserve.store.queue import RequestQueue
from chatserve.store.stage import Stage

logger = logging.getLogger(__name__)

POLL_S = 1.0
_ROUND_S = 0.25

_QUEUED_NUMBER = 1
"""The number of `response.queued`, before which a reader is told nothing else."""

Event = dict[str, Any]
Send = Callable[[Event], Awaitable[None]]
Stages = dict[RequestId, Stage | None] | None
"""How far each request is, None for one that has ended; None at all where the store is away."""


@dataclass(slots=True)
class _Round:
    """One look for many. Mutable: requests join until it begins."""

    looking: asyncio.Task[Stages]
    request_ids: set[RequestId] = field(default_factory=set)


class Updates:
    """The looks at requests that readers of this gateway hear nothing of.

    Owns: the looks to come.
    Used from: the event loop.
    """

    def __init__(self, queue: RequestQueue, models: ServedModels) -> None:
        self._queue = queue
        self._models = models
        self._rounds: dict[int, _Round] = {}

    @contextmanager
    def telling(self, answer: Answer, after: int, send: Send) -> Iterator[Callable[[Event], None]]:
        """Send updates of an answer until the context ends, to a reader who has events `after`.

        Yields what is to be called with each event that the reader has got.
        """
        reader = _Reader(self, answer, has_begun=after >= _QUEUED_NUMBER)
        telling = asyncio.create_task(_send_all(reader.updates(), send))
        try:
            yield reader.hear
        finally:
            telling.cancel()

    async def aclose(self) -> None:
        looking = [each.looking for each in self._rounds.values()]
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)

    async def look(self, request_id: RequestId) -> Stages:
        """Look how far a request is, together with whoever else asks now."""
        number = math.ceil(asyncio.get_running_loop().time() / _ROUND_S)
        if number not in self._rounds:
            self._rounds[number] = _Round(asyncio.create_task(self._look(number)))
        joined = self._rounds[number]
        joined.request_ids.add(request_id)
        return await asyncio.shield(joined.looking)  # others wait for the same look

    def is_lost(self, stage: Stage) -> bool:
        """Return whether an answer that a worker had begun with has none now."""
        if stage.owner is None:
            return stage.was_claimed
        return all(beat.worker_id != stage.owner for beat in self._models.beats)

    def num_workers(self, model: str) -> int:
        """Return how many workers can take a request over."""
        return sum(beat.model == model and not beat.is_draining for beat in self._models.beats)

    async def _look(self, number: int) -> Stages:
        await asyncio.sleep(number * _ROUND_S - asyncio.get_running_loop().time())
        request_ids = list(self._rounds.pop(number).request_ids)
        try:
            return await self._stages(request_ids)
        except StoreError as error:
            logger.log(error.log_level, "how far requests are cannot be read: %s", error)
            return None

    async def _stages(self, request_ids: Sequence[RequestId]) -> Stages:
        stages = await self._queue.stages(request_ids)
        if any(stage is not None and self.is_lost(stage) for stage in stages):
            await self._models.refresh()  # the owner may be new, and its first heartbeat unread
        return dict(zip(request_ids, stages, strict=True))


class _Reader:
    """One reader of an answer, and what it was told between the events.

    Owns: how many events it has got.
    Used from: the event loop, by the task that reads the answer and the one that tells updates.
    """

    def __init__(self, looks: Updates, answer: Answer, *, has_begun: bool) -> None:
        self._looks = looks
        self._answer = answer
        self._num_heard = 0
        self._has_begun = asyncio.Event()
        if has_begun:
            self._has_begun.set()

    def hear(self, event: Event) -> None:
        self._num_heard += 1
        if event["type"] != EventKind.CREATED:
            self._has_begun.set()

    async def updates(self) -> AsyncGenerator[Event, None]:
        """Yield what changes while no events come, until the answer has ended."""
        await self._has_begun.wait()
        told, num_heard = self._first_place(), self._num_heard
        if told is not None:
            yield told
        while True:
            await asyncio.sleep(POLL_S)
            if self._num_heard != num_heard:
                told, num_heard = None, self._num_heard
                continue
            stages = await self._looks.look(self._answer.record.response_id)
            if stages is None or self._num_heard != num_heard:
                continue
            stage = stages[self._answer.record.response_id]
            if stage is None:
                return
            update = self._update_of(stage)
            if update is not None and _is_news(update, told):
                told = update
                yield update

    def _first_place(self) -> Event | None:
        """Return where the request began to wait, if that is worth a frame.

        The first of a line is mostly claimed at once; where an answer that was started elsewhere
        stands is not known yet.
        """
        place = self._answer.place
        if place is None or place.position == 0:
            return None
        return self._update_of(Stage(place=place))

    def _update_of(self, stage: Stage) -> Event | None:
        record = self._answer.record
        if self._looks.is_lost(stage):
            num_workers = self._looks.num_workers(record.model)
            return self._update("worker.lost", num_workers=num_workers)
        if stage.place is not None:
            place = stage.place
            return self._update("queue.updated", position=place.position, eta_ms=place.eta_ms)
        if stage.prefill is not None:
            prefill = stage.prefill
            return self._update(
                "prefill.updated",
                cached_tokens=prefill.cached_tokens,
                computed_tokens=prefill.computed_tokens,
                total_tokens=prefill.total_tokens,
            )
        return None

    def _update(self, name: str, **members: int | None) -> Event:
        response_id = self._answer.record.response_id
        return {"type": f"chatserve:{name}", "response_id": response_id, **members}


async def _send_all(updates: AsyncGenerator[Event, None], send: Send) -> None:
    async with aclosing(updates):
        async for update in updates:
            await send({**update})


def _is_news(update: Event, told: Event | None) -> bool:
    """Return whether an update says something new; an estimate alone is no change."""
    return told is None or {**update, "eta_ms": None} != {**told, "eta_ms": None}
