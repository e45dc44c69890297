"""Sends each request to the worker that fits it best, as far as this gateway can tell.

Owns a `RoutingTable` for each model and feeds it: loads from the heartbeats that `ServedModels`
reads every second, digests whenever a heartbeat says that there is a new one. Decides nothing; the
policy is in `routing.py`. While one worker serves a model there is nothing to decide and nothing is
read.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from chatserve.engine.api import GenerationRequest
from chatserve.errors import StoreError
from chatserve.gateway.background import Background
from chatserve.gateway.models import ServedModels
from chatserve.gateway.routed_prompt import RoutedPrompt
from chatserve.gateway.routing import RoutingTable, WorkerLoad
from chatserve.store.workers import WorkerBeat, Workers

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.1


class Router:
    """Where this gateway sends requests.

    Owns: the tables, and the task that keeps them fresh. Used from: the event loop.
    """

    def __init__(self, workers: Workers, models: ServedModels) -> None:
        self._workers = workers
        self._models = models
        self._tables: dict[str, RoutingTable] = {}
        self._digest_numbers: dict[str, int] = {}
        self._refreshing = Background(self._keep_fresh)

    def start(self) -> None:
        """Keep the picture fresh until `aclose`."""
        self._refreshing.start()

    async def aclose(self) -> None:
        await self._refreshing.aclose()

    @contextmanager
    def sending(self, request: GenerationRequest) -> Iterator[str | None]:
        """Yield the worker that a request is meant for, None when any will do.

        Until the context ends it counts as on its way there, or as running.
        """
        table, route = self._tables.get(request.model), None
        if table is not None:
            prompt = RoutedPrompt(request.prompt_token_ids, request.tenant)
            route = table.choose(prompt, time.monotonic())
        try:
            yield route.worker_id if route else None
        finally:
            if table is not None and route is not None:
                table.finish(route)

    async def refresh(self) -> None:
        """Take in the last heartbeats, and the digests that are new."""
        by_model: dict[str, list[WorkerBeat]] = {}
        for beat in self._models.beats:
            if not beat.is_draining:
                by_model.setdefault(beat.model, []).append(beat)
        several = {model: beats for model, beats in by_model.items() if len(beats) > 1}
        self._tables = {model: self._tables.get(model) or RoutingTable() for model in several}
        for model, beats in several.items():
            self._take_loads(self._tables[model], beats)
        await self._read_digests([beat for beats in several.values() for beat in beats])

    def _take_loads(self, table: RoutingTable, beats: Sequence[WorkerBeat]) -> None:
        for worker_id in table.worker_ids - {beat.worker_id for beat in beats}:
            table.remove(worker_id)
        for beat in beats:
            stats = beat.stats
            load = WorkerLoad(
                running=stats.requests_running,
                waiting=stats.requests_waiting,
                seats=beat.max_claims,
                free_pages=stats.pages_free,
            )
            table.put_load(beat.worker_id, load)

    async def _read_digests(self, beats: Sequence[WorkerBeat]) -> None:
        known, models = self._digest_numbers, {beat.worker_id: beat.model for beat in beats}
        numbers = {beat.worker_id: beat.digest_number for beat in beats}
        changed = [worker_id for worker_id in numbers if known.get(worker_id) != numbers[worker_id]]
        for worker_id, digest in (await self._workers.digests(changed)).items():
            self._tables[models[worker_id]].put_digest(worker_id, digest)
        self._digest_numbers = numbers

    async def _keep_fresh(self) -> None:
        seen: Sequence[WorkerBeat] | None = None
        while True:
            try:
                if seen is not self._models.beats:
                    seen = self._models.beats
                    await self.refresh()
            except StoreError as error:
                logger.log(error.log_level, "the workers' digests cannot be read: %s", error)
            await asyncio.sleep(_LOOK_EVERY_S)
