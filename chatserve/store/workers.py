"""Which workers live, and what a gateway must know of the models they serve.

Owns heartbeats and model cards. A card is megabytes, for its tokenizer, and is therefore stored
once under its fingerprint; heartbeats name the fingerprint, so that a gateway fetches a card only
when it changes.
"""

import hashlib
from dataclasses import asdict, dataclass

import orjson

from chatserve.engine.api import EngineStats, ModelCard
from chatserve.store import keys
from chatserve.store.codec import dump_json
from chatserve.store.redis_client import RedisClient


@dataclass(frozen=True, slots=True)
class WorkerBeat:
    """One sign of life. `metrics_url` is where its own metrics can be read, if anywhere."""

    worker_id: str
    model: str
    card_fingerprint: str
    version: str
    stats: EngineStats
    metrics_url: str | None = None


class Workers:
    """The workers that live and the cards of their models.

    Owns: nothing in memory.
    Used from: the event loop, of workers to publish and of gateways to read.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def publish_card(self, card: ModelCard) -> str:
        """Store a card as its model's current one and return its fingerprint."""
        packed = dump_json(card.to_dict())
        fingerprint = hashlib.sha256(packed.encode()).hexdigest()
        await self._redis.call_many(
            [
                ("SET", keys.CARD + fingerprint, packed, "EX", keys.IDLE_TTL_S),
                ("SET", keys.MODEL + card.name, fingerprint, "EX", keys.IDLE_TTL_S),
            ]
        )
        return fingerprint

    async def heartbeat(self, beat: WorkerBeat, ttl_ms: int) -> bool:
        """Say that a worker lives for the next `ttl_ms`.

        False when the store has lost the card meanwhile: it must be published again.
        """
        *_, card_lives, model_lives = await self._redis.call_many(
            [
                ("SET", keys.WORKER + beat.worker_id, dump_json(asdict(beat)), "PX", ttl_ms),
                ("SADD", keys.WORKERS, beat.worker_id),
                ("EXPIRE", keys.CARD + beat.card_fingerprint, keys.IDLE_TTL_S),
                ("EXPIRE", keys.MODEL + beat.model, keys.IDLE_TTL_S),
            ]
        )
        return bool(card_lives and model_lives)

    async def live(self) -> list[WorkerBeat]:
        """Return the last heartbeat of every worker that lives, in the order of their ids."""
        worker_ids = sorted(await self._redis.call("SMEMBERS", keys.WORKERS))
        if not worker_ids:
            return []
        packed = await self._redis.call("MGET", *(keys.WORKER + w for w in worker_ids))
        beats = dict(zip(worker_ids, packed, strict=True))
        dead = [worker_id for worker_id, beat in beats.items() if beat is None]
        if dead:
            # One that beats again this very moment returns with its next beat.
            await self._redis.call("SREM", keys.WORKERS, *dead)
        return [_parse_beat(beat) for beat in beats.values() if beat is not None]

    async def card(self, model: str) -> ModelCard | None:
        """Return the current card of a model, None when no worker published one lately."""
        fingerprint = await self._redis.call("GET", keys.MODEL + model)
        packed = await self._redis.call("GET", f"{keys.CARD}{fingerprint}") if fingerprint else None
        return ModelCard.from_dict(orjson.loads(packed)) if packed else None

    async def remove(self, worker_id: str) -> None:
        """Say that a worker has stopped."""
        await self._redis.call_many(
            [
                ("DEL", keys.WORKER + worker_id, keys.INBOX + worker_id),
                ("SREM", keys.WORKERS, worker_id),
            ]
        )


def _parse_beat(packed: str) -> WorkerBeat:
    fields = orjson.loads(packed)
    return WorkerBeat(**{**fields, "stats": EngineStats(**fields["stats"])})
