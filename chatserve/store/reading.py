"""Which gateways have readers of an answer that must not go on without any.

Owns the marks, which are fields of the request and vanish with it. The gateway that starts an
answer leaves its mark with the request (`RequestQueue.enqueue`); one where it is resumed joins. How
many readers a gateway has, and when one counts as gone, is its own business.

A gateway that is killed, or stops while its readers go elsewhere, leaves its mark behind. What it
read then runs to its end, as it would had nobody else come: only the gateway that counts readers
can say that the last one is gone.
"""

from chatserve.engine.api import RequestId
from chatserve.store import scripts
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient


class Reading:
    """The marks of reading gateways.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def join(self, request_id: RequestId, *, reader: str) -> None:
        """Mark an answer as read by a gateway too; one that has ended needs no mark."""
        root = self._partitions.of_id(request_id).root
        await self._redis.run(scripts.JOIN_READERS, root, request_id, reader)

    async def leave(self, request_id: RequestId, *, reader: str) -> bool:
        """Take a gateway's mark away, and stop the request if it was the last one.

        Returns whether another gateway keeps it. A repetition does no harm.
        """
        root = self._partitions.of_id(request_id).root
        return bool(await self._redis.run(scripts.LEAVE_READERS, root, request_id, reader))
