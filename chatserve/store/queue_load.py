"""How many requests of each tenant wait and run.

Owns reading it out of what the fair queue holds (`lua/fair_queue.lua`): tenants' lines and seats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from chatserve.store import keys
from chatserve.store.codec import Command
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient


@dataclass(frozen=True, slots=True)
class TenantLoad:
    """The requests of one tenant: those that wait, and those that a worker has claimed."""

    queued: int
    running: int


class QueueLoad:
    """What is asked of the queues.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def of_tenants(self, tenants: Sequence[str], models: Sequence[str]) -> list[TenantLoad]:
        """Return the load of each tenant, summed over these models, in one round trip."""
        commands: list[Command] = []
        for tenant in tenants:
            partition = self._partitions.of_tenant(tenant)
            commands += [("ZCARD", partition.key(keys.line(model, tenant))) for model in models]
            commands += [("HGET", partition.key(keys.SEATS + model), tenant) for model in models]
        counts = iter([int(count or 0) for count in await self._redis.call_many(commands)])
        num_models = len(models)
        return [
            TenantLoad(
                queued=sum(islice(counts, num_models)), running=sum(islice(counts, num_models))
            )
            for _ in tenants
        ]
