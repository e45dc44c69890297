"""What workers say of the registered prompts: what each came to in their pool.

Owns the record and how it is stored: one document for each worker, written whole, which vanishes
with the worker. Whoever reads it asks for workers that live.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import orjson

from chatserve.engine.api import PrefixState
from chatserve.store import keys
from chatserve.store.codec import dump_json
from chatserve.store.redis_client import RedisClient


@dataclass(frozen=True, slots=True)
class PromptStatus:
    """What became of one registered prompt in one worker.

    `num_tokens` lead every prompt that is made with it, and take `num_pages` pages together with
    the preamble before them. `at` is when this began to be so, in seconds since 1970.
    """

    tenant: str
    name: str
    revision: str
    state: PrefixState
    at: int
    num_tokens: int = 0
    num_pages: int = 0
    is_restored: bool = False
    reason: str | None = None


class PromptNews:
    """The statuses that workers have written.

    Owns: nothing in memory.
    Used from: the event loop, of workers to write and of the operator's commands to read.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def write(self, worker_id: str, statuses: Sequence[PromptStatus], ttl_ms: int) -> None:
        """Say what became of every prompt, in place of what was said before."""
        packed = dump_json([asdict(status) for status in statuses])
        await self._redis.call("SET", _key(worker_id), packed, "PX", ttl_ms)

    async def keep(self, worker_id: str, ttl_ms: int) -> bool:
        """Let what was written last another `ttl_ms`; False when it is gone already."""
        return bool(await self._redis.call("PEXPIRE", _key(worker_id), ttl_ms))

    async def read(self, worker_ids: Sequence[str]) -> dict[str, list[PromptStatus]]:
        """Return the statuses of some workers by worker; those that wrote none have none."""
        if not worker_ids:
            return {}
        packed = await self._redis.call("MGET", *map(_key, worker_ids))
        found = zip(worker_ids, packed, strict=True)
        return {worker_id: _parse(document or "[]") for worker_id, document in found}


def _parse(document: str) -> list[PromptStatus]:
    return [
        PromptStatus(**{**fields, "state": PrefixState(fields["state"])})
        for fields in orjson.loads(document)
    ]


def _key(worker_id: str) -> str:
    return keys.GLOBAL.key(keys.PROMPT_NEWS + worker_id)
