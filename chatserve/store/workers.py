"""Which workers live, and what a gateway must know of the models they serve.

Owns heartbeats, model cards and digests of prefixes. A card is megabytes, for its tokenizer, and is
therefore stored once under its fingerprint; heartbeats name the fingerprint, so that a gateway
fetches a card only when it changes. So do they with the number of a worker's digest.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import orjson

from chatserve.engine.api import EngineStats, ModelCard
from chatserve.prefix_digest import PrefixDigest
from chatserve.store import keys, scripts
from chatserve.store.codec import dump_json
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient

_WORKERS = keys.GLOBAL.key(keys.WORKERS)


@dataclass(frozen=True, slots=True)
class WorkerBeat:
    """One sign of life. `metrics_url` is where its own metrics can be read, if anywhere.

    It takes `max_claims` requests at once; `digest_number` counts the digests that it published. A
    worker that drains claims nothing any more, and will be gone soon. `ttl_ms` is how long the sign
    lasts, noted when it is given.
    """

    worker_id: str
    model: str
    card_fingerprint: str
    version: str
    stats: EngineStats
    metrics_url: str | None = None
    is_draining: bool = False
    max_claims: int = 1
    digest_number: int = 0
    ttl_ms: int = field(default=0, compare=False)


class Workers:
    """The workers that live and the cards of their models.

    Owns: nothing in memory.
    Used from: the event loop, of workers to publish and of gateways to read.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def publish_card(self, card: ModelCard) -> str:
        """Store a card as its model's current one and return its fingerprint."""
        packed = dump_json(card.to_dict())
        fingerprint = hashlib.sha256(packed.encode()).hexdigest()
        await self._redis.call_many(
            [
                ("SET", _key(keys.CARD + fingerprint), packed, "EX", keys.IDLE_TTL_S),
                ("SET", _key(keys.MODEL + card.name), fingerprint, "EX", keys.IDLE_TTL_S),
            ]
        )
        return fingerprint

    async def heartbeat(self, beat: WorkerBeat, ttl_ms: int) -> bool:
        """Say that a worker lives for the next `ttl_ms`.

        False when the store has lost the card meanwhile: it must be published again.
        """
        has_card = await self._redis.run(
            scripts.BEAT,
            keys.GLOBAL.root,
            beat.worker_id,
            dump_json(asdict(replace(beat, ttl_ms=ttl_ms))),
            ttl_ms,
            beat.card_fingerprint,
            beat.model,
        )
        return bool(has_card)

    async def live(self) -> list[WorkerBeat]:
        """Return the last heartbeat of every worker that lives, in the order of their ids."""
        worker_ids = sorted(await self._redis.call("ZRANGE", _WORKERS, 0, -1))
        if not worker_ids:
            return []
        # The others' heartbeats forget those that have run out.
        packed = await self._redis.call("MGET", *(_key(keys.WORKER + w) for w in worker_ids))
        return [_parse_beat(beat) for beat in packed if beat is not None]

    async def ages_ms(self, beats: Sequence[WorkerBeat]) -> list[int | None]:
        """Return how long ago each worker gave its last sign of life; None of one that is gone."""
        left_ms: list[int] = await self._redis.call_many(
            [("PTTL", _key(keys.WORKER + beat.worker_id)) for beat in beats]
        )
        return [
            max(0, beat.ttl_ms - left) if left >= 0 else None
            for beat, left in zip(beats, left_ms, strict=True)
        ]

    async def publish_digest(self, worker_id: str, digest: PrefixDigest, ttl_ms: int) -> None:
        """Say which prefixes a worker holds; its heartbeats renew that from now on."""
        await self._redis.call("SET", _key(keys.DIGEST + worker_id), digest.pack(), "PX", ttl_ms)

    async def digests(self, worker_ids: Sequence[str]) -> dict[str, PrefixDigest]:
        """Return the digests of these workers, of those that have one."""
        if not worker_ids:
            return {}
        packed = await self._redis.call("MGET", *(_key(keys.DIGEST + w) for w in worker_ids))
        found = zip(worker_ids, packed, strict=True)
        return {worker_id: PrefixDigest.unpack(digest) for worker_id, digest in found if digest}

    async def card(self, model: str) -> ModelCard | None:
        """Return the current card of a model, None when no worker published one lately."""
        fingerprint = await self._redis.call("GET", _key(keys.MODEL + model))
        if fingerprint is None:
            return None
        packed = await self._redis.call("GET", _key(keys.CARD + fingerprint))
        return ModelCard.from_dict(orjson.loads(packed)) if packed else None

    async def remove(self, worker_id: str) -> None:
        """Say that a worker has stopped."""
        await self._redis.call_many(
            [
                ("DEL", _key(keys.WORKER + worker_id), _key(keys.DIGEST + worker_id)),
                ("ZREM", _WORKERS, worker_id),
                *(("DEL", each.key(keys.INBOX + worker_id)) for each in self._partitions.all),
            ]
        )


def _parse_beat(packed: str) -> WorkerBeat:
    fields = orjson.loads(packed)
    return WorkerBeat(**{**fields, "stats": EngineStats(**fields["stats"])})


def _key(name: str) -> str:
    return keys.GLOBAL.key(name)
