"""What a tenant has in its partition, so that it can be erased without a search.

Owns two indices and how they are read: the users that have sessions, and the responses that are in
no session and live longer than `SHORT_TTL_S`. Those of a session are found through it; what lives
shorter vanishes by itself soon enough, and an entry would cost every request a write.
"""

from collections.abc import Sequence

from chatserve.engine.api import RequestId
from chatserve.store import keys
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient
from chatserve.store.responses import ResponseRecord

SHORT_TTL_S = 3600


def indexed_ttl_s(record: ResponseRecord) -> int | None:
    """Return for how long a response stands in the index, None for one that does not."""
    is_indexed = record.session_id is None and record.ttl_s > SHORT_TTL_S
    return record.ttl_s if is_indexed else None


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
