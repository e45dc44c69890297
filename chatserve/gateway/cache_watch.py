"""The snapshots of the workers' caches, as fresh as somebody asks for them.

Owns this gateway's copy of them and the mark in the store by which workers are asked. However many
look, each snapshot is read once; while nobody looks, nothing is.
"""

import asyncio
from collections.abc import Mapping, Sequence

from chatserve.cache_snapshot import CacheSnapshot
from chatserve.gateway.models import ServedModels
from chatserve.store.cache_snapshots import CacheSnapshots

WATCH_TTL_MS = 5_000
FRESH_S = 0.4
_FIRST_WAIT_S = 1.0
_POLL_S = 0.05


class CacheWatch:
    """What the caches of all live workers look like.

    Owns: the last snapshots and when they were read. Used from: the event loop.
    """

    def __init__(self, store: CacheSnapshots, models: ServedModels) -> None:
        self._store = store
        self._models = models
        self._last: Mapping[str, CacheSnapshot] = {}
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()

    async def snapshots(self) -> Mapping[str, CacheSnapshot]:
        """Return the snapshots by worker, of the workers that have shown one.

        After a quiet time this waits up to a second for the first ones.
        """
        loop = asyncio.get_running_loop()
        async with self._lock:
            age_s = loop.time() - self._read_at
            if age_s < FRESH_S:
                return self._last
            worker_ids = [beat.worker_id for beat in self._models.beats]
            await self._store.watch(worker_ids, WATCH_TTL_MS)
            if age_s * 1000 < WATCH_TTL_MS:
                self._last = await self._store.read(worker_ids)
            else:
                self._last = await self._wait(worker_ids)
            self._read_at = loop.time()
            return self._last

    async def _wait(self, worker_ids: Sequence[str]) -> Mapping[str, CacheSnapshot]:
        loop = asyncio.get_running_loop()
        until = loop.time() + _FIRST_WAIT_S
        found = await self._store.read(worker_ids)
        while len(found) < len(worker_ids) and loop.time() < until:
            await asyncio.sleep(_POLL_S)
            found = await self._store.read(worker_ids)
        return found
