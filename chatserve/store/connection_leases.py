"""How many connections each tenant and each key has open, over all gateways.

Owns the leases: a connection counts while its gateway renews it, so that those of a gateway that
was killed are forgotten by themselves. Knows no sockets.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatserve.store import keys, scripts
from chatserve.store.codec import Command, Value, counted, dump_json
from chatserve.store.keys import Partition, Partitions
from chatserve.store.limits import tenant_scope
from chatserve.store.redis_client import RedisClient

LEASE_MS = 20_000

# As many as one call renews: a server that does much at once answers nobody meanwhile.
_MAX_RENEWED = 500


@dataclass(frozen=True, slots=True)
class ConnectionScope:
    """A tenant or a key that may have `limit` connections at a time."""

    name: str
    limit: int


@dataclass(frozen=True, slots=True)
class CountedConnection:
    """A connection, and who it counts for; all of them are the tenant's, or keys of it."""

    connection_id: str
    tenant: str
    scopes: tuple[ConnectionScope, ...]


class ConnectionLeases:
    """The leases of connections.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def take(self, connection: CountedConnection) -> ConnectionScope | None:
        """Count a connection; return the scope that has no room for it, if there is one."""
        options = {
            "id": connection.connection_id,
            "lease_ms": LEASE_MS,
            "scopes": [{"name": each.name, "limit": each.limit} for each in connection.scopes],
        }
        root = self._partitions.of_tenant(connection.tenant).root
        refused = await self._redis.run(scripts.COUNT_CONNECTION, root, dump_json(options))
        return ConnectionScope(*refused) if refused else None

    async def renew(self, connections: Iterable[CountedConnection]) -> None:
        """Let connections count for another lease, in one round trip."""
        runs: dict[Partition, list[list[Value]]] = {}
        for connection in connections:
            names = [scope.name for scope in connection.scopes]
            partition = self._partitions.of_tenant(connection.tenant)
            runs.setdefault(partition, []).append(counted([connection.connection_id, *names]))
        await self._redis.run_many(
            scripts.RENEW_CONNECTIONS,
            [call for partition, each in runs.items() for call in _calls(partition, each)],
        )

    async def count(self, tenants: Sequence[str]) -> list[int]:
        """Return how many connections count for each of these tenants now."""
        seconds, microseconds = await self._redis.call("TIME")
        now_ms = int(seconds) * 1000 + int(microseconds) // 1000
        counts: list[int] = await self._redis.call_many(
            [
                ("ZCOUNT", self._key(tenant, tenant_scope(tenant)), f"({now_ms}", "+inf")
                for tenant in tenants
            ]
        )
        return counts

    async def release(self, connection: CountedConnection) -> None:
        """Count a connection no longer; a repetition does no harm."""
        await self._redis.call_many(
            [
                ("ZREM", self._key(connection.tenant, scope.name), connection.connection_id)
                for scope in connection.scopes
            ]
        )

    def _key(self, tenant: str, scope_name: str) -> str:
        return self._partitions.of_tenant(tenant).key(keys.CONNECTIONS + scope_name)


def _calls(partition: Partition, runs: list[list[Value]]) -> Iterable[Command]:
    for first in range(0, len(runs), _MAX_RENEWED):
        some = runs[first : first + _MAX_RENEWED]
        yield (partition.root, LEASE_MS, *(value for run in some for value in run))
