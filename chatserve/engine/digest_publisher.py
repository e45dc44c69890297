"""Tells the gateways what a worker's prefix cache holds, so that they send it what fits.

Owns the rhythm. The names are gathered in the engine thread, between two steps; the filter is made
of them in another thread, and published when it has changed. Large trees take longer to walk, and
are walked less often: the engine gives no more than half a percent of its time to this.
"""

import asyncio

from chatserve.engine.engine_thread import EngineThread
from chatserve.prefix_digest import HeldPrefixes, PrefixDigest
from chatserve.store.workers import Workers

_SHARE_OF_TIME = 0.005


class DigestPublisher:
    """Publishes the digest of one worker.

    Owns: the digest last published, and how many there were. Used from: the event loop.
    """

    def __init__(
        self, workers: Workers, engine: EngineThread, worker_id: str, *, every_s: float, ttl_ms: int
    ):
        self._workers = workers
        self._engine = engine
        self._worker_id = worker_id
        self._every_s = every_s
        self._ttl_ms = ttl_ms
        self._held: HeldPrefixes | None = None
        self.number = 0

    def repeat(self) -> None:
        """Publish next time in any case: the store has lost what it was told."""
        self._held = None

    async def publish(self) -> None:
        """Wait for the next time, and publish what has changed by then.

        Cancelled while the engine gathers, it leaves nothing: the engine drops the answer.
        """
        await asyncio.sleep(self._every_s)
        held, took_s = await asyncio.wrap_future(self._engine.held_prefixes())
        if held != self._held:
            digest = await asyncio.to_thread(PrefixDigest.of, held)
            await self._workers.publish_digest(self._worker_id, digest, self._ttl_ms)
            self._held, self.number = held, self.number + 1
        await asyncio.sleep(max(0.0, took_s / _SHARE_OF_TIME - self._every_s))
