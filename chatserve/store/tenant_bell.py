"""The bell of tenants and keys: who was changed, and whose access has ended.

Owns the stream's entries and how they are read. The scripts that change a tenant or a key write
them. A gateway forgets what it knew of whoever is named, and a worker drops what it cached and runs
for whoever has lost access.

Unlike other bells this one keeps many entries: a worker cannot find out by reading a registry which
tenant is gone. At most a thousand are kept, for a day.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chatserve.store import keys
from chatserve.store.redis_client import RedisClient
from chatserve.store.streams import StreamEntry, parse_entries, read_streams

_BELL = keys.GLOBAL.key(keys.TENANT_BELL)
_COUNT = 200


@dataclass(frozen=True, slots=True)
class AccessNews:
    """What happened to a tenant, or to one of its keys where `key_id` is not empty.

    `is_revoked` says that the access has ended; otherwise something was added or changed.
    """

    tenant: str
    key_id: str
    is_revoked: bool


class TenantBell:
    """The news of tenants and keys, in order.

    Owns: nothing in memory.
    Used from: the event loop, of gateways and of workers.
    """

    def __init__(self, commands: RedisClient, blocking: RedisClient) -> None:
        self._commands = commands
        self._blocking = blocking

    async def history(self) -> tuple[str, list[AccessNews]]:
        """Return the news that are kept, and the cursor after them."""
        reply = await self._commands.call("XRANGE", _BELL, "-", "+")
        return _parse(parse_entries(reply), "0-0")

    async def wait(self, cursor: str, block_ms: int) -> tuple[str, list[AccessNews]]:
        """Return the news after a cursor and the cursor after them, waiting for a first one."""
        found = await read_streams(self._blocking, {_BELL: cursor}, block_ms=block_ms, count=_COUNT)
        return _parse(found.get(_BELL, []), cursor)


def _parse(entries: Sequence[StreamEntry], cursor: str) -> tuple[str, list[AccessNews]]:
    news = [
        AccessNews(
            entry.fields["tenant"], entry.fields["key_id"], entry.fields["is_revoked"] == "1"
        )
        for entry in entries
    ]
    return (entries[-1].entry_id if entries else cursor), news
