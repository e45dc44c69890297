"""Shows what a worker's cache looks like, while somebody looks.

Owns the rhythm. The snapshot is taken in the engine thread, between two steps, at most twice a
second; of a large tree it takes longer, and is taken less often: the engine gives no more than five
percent of its time to whoever looks, and nothing where nobody does.
"""

import asyncio

from chatserve.engine.engine_thread import EngineThread
from chatserve.store.cache_snapshots import CacheSnapshots

_SHARE_OF_TIME = 0.05
_INTERVALS_TO_LIVE = 6
"""A snapshot stays for so many intervals when no other follows."""


class SnapshotPublisher:
    """Publishes the snapshots of one worker.

    Owns: nothing but its rhythm. Used from: the event loop.
    """

    def __init__(
        self, snapshots: CacheSnapshots, engine: EngineThread, worker_id: str, *, every_s: float
    ):
        self._snapshots = snapshots
        self._engine = engine
        self._worker_id = worker_id
        self._every_s = every_s

    async def publish(self) -> None:
        """Wait for the next time, and publish a snapshot if the worker is watched by then.

        Cancelled while the engine takes it, it leaves nothing: the engine drops the answer.
        """
        await asyncio.sleep(self._every_s)
        if not await self._snapshots.is_watched(self._worker_id):
            return
        snapshot, took_s = await asyncio.wrap_future(self._engine.cache_snapshot())
        pause_s = max(self._every_s, took_s / _SHARE_OF_TIME)
        ttl_ms = int(_INTERVALS_TO_LIVE * pause_s * 1000)
        await self._snapshots.publish(self._worker_id, snapshot, ttl_ms)
        await asyncio.sleep(pause_s - self._every_s)
