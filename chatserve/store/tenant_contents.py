"""What a tenant has in its partition, so that it can be erased without a search.

Owns two indices and how they are read: the users that have sessions, and the responses that are in
flight or in no session, as long as they live. Those that a session has got are found through it.
"""

from collections.abc import Sequence

from chatserve.engine.api import RequestId
from chatserve.store import keys
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient


class TenantContents:
    """The indices of what tenants have.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def users(self, tenant: str, limit: int) -> list[str]:
        """Return up to `limit` of the users that have or had sessions."""
        return await self._first(self._key(keys.USERS, tenant), limit)

    async def responses(self, tenant: str, limit: int) -> list[RequestId]:
        """Return up to `limit` of the indexed responses; some may have run out."""
        found = await self._first(self._key(keys.RESPONSES, tenant), limit)
        return [RequestId(each) for each in found]

    async def drop_users(self, tenant: str, users: Sequence[str]) -> None:
        """Take users, whose sessions are gone, out of the index."""
        await self._redis.call("ZREM", self._key(keys.USERS, tenant), *users)

    async def drop_responses(self, tenant: str, response_ids: Sequence[RequestId]) -> None:
        """Take responses out of the index."""
        await self._redis.call("ZREM", self._key(keys.RESPONSES, tenant), *response_ids)

    async def _first(self, key: str, limit: int) -> list[str]:
        found: list[str] = await self._redis.call("ZRANGE", key, 0, limit - 1)
        return found

    def _key(self, kind: str, tenant: str) -> str:
        return self._partitions.of_tenant(tenant).key(kind + tenant)
