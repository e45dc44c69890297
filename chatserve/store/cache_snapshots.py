"""What workers show of their caches while somebody looks.

Owns both sides of that: a gateway marks workers as watched, and a worker that is watched writes one
document, in place of the one before. Both run out within seconds, so that nothing has to be undone
when the viewer goes. All gateways read the same document.
"""

import asyncio
from collections.abc import Sequence

import orjson

from chatserve.cache_snapshot import CacheSnapshot
from chatserve.store import keys
from chatserve.store.codec import dump_json
from chatserve.store.redis_client import RedisClient


class CacheSnapshots:
    """The marks of viewers, and the last snapshot of each watched worker.

    Owns: nothing in memory.
    Used from: the event loop, of gateways to watch and of workers to publish.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def watch(self, worker_ids: Sequence[str], ttl_ms: int) -> None:
        """Ask workers for snapshots for the next `ttl_ms`."""
        await self._redis.call_many(
            [("SET", _key(keys.CACHE_WATCH, each), 1, "PX", ttl_ms) for each in worker_ids]
        )

    async def is_watched(self, worker_id: str) -> bool:
        """Tell whether anybody wants snapshots of a worker."""
        return bool(await self._redis.call("EXISTS", _key(keys.CACHE_WATCH, worker_id)))

    async def publish(self, worker_id: str, snapshot: CacheSnapshot, ttl_ms: int) -> None:
        """Show what a worker's cache looks like, in place of what was shown before."""
        packed = await asyncio.to_thread(dump_json, snapshot)
        await self._redis.call("SET", _key(keys.CACHE_SNAPSHOT, worker_id), packed, "PX", ttl_ms)

    async def read(self, worker_ids: Sequence[str]) -> dict[str, CacheSnapshot]:
        """Return the last snapshots of these workers, of those that have one."""
        if not worker_ids:
            return {}
        names = [_key(keys.CACHE_SNAPSHOT, each) for each in worker_ids]
        packed = await self._redis.call("MGET", *names)
        found = {name: each for name, each in zip(worker_ids, packed, strict=True) if each}
        return await asyncio.to_thread(_parse, found)


def _parse(packed: dict[str, str]) -> dict[str, CacheSnapshot]:
    return {name: CacheSnapshot.from_dict(orjson.loads(each)) for name, each in packed.items()}


def _key(kind: str, worker_id: str) -> str:
    return keys.GLOBAL.key(kind + worker_id)
