"""What was used: requests and tokens, by tenant, day, user and model.

Owns reading the counters; the script that ends an answer counts it (`lua/usage.lua`), so the sums
are those over the response objects. Days are those of UTC, and an answer counts on the day on which
it ends.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from chatserve.store import keys
from chatserve.store.codec import pairs
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient

OTHER_USERS = "*"
"""Who is named where a day has more users than are counted by name."""

_EPOCH = date(1970, 1, 1)
_COUNTERS = ("requests", "input", "cached", "output")


@dataclass(frozen=True, slots=True)
class Used:
    """Requests that ended, and their tokens; of the input, `cached_tokens` were not computed."""

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Used") -> "Used":
        return Used(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one user of a tenant used of one model on one day."""

    tenant: str
    day: date
    user: str
    model: str
    used: Used


class UsageCounters:
    """The counters of usage.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def tenants(self) -> list[str]:
        """Return whoever something is counted of, by name; they may have been removed since."""
        found: list[str] = []
        for partition in self._partitions.all:
            name = partition.key(keys.USAGE_TENANTS)
            found += await self._redis.call("ZRANGE", name, 0, -1)
        return sorted(found)

    async def knows(self, tenant: str) -> bool:
        """Return whether anything is counted of a tenant."""
        name = self._partitions.of_tenant(tenant).key(keys.USAGE_TENANTS)
        return await self._redis.call("ZSCORE", name, tenant) is not None

    async def read(
        self, tenant: str, first: date, last: date, *, user: str | None = None
    ) -> list[UsageRow]:
        """Return the rows of a tenant from the first day to the last, both included.

        A busy day has thousands of rows, so that each is read by itself; with `user` only that
        one's are returned.
        """
        rows: list[UsageRow] = []
        for number in range((last - first).days + 1):
            day = first + timedelta(days=number)
            counters = pairs(await self._redis.call("HGETALL", self._key(tenant, day)))
            rows += _parse(tenant, day, counters, user)
        return rows

    async def totals(self, tenants: Sequence[str], day: date) -> list[Used]:
        """Return what all users of each of these tenants used on a day, in one round trip."""
        replies = await self._redis.call_many(
            [("HMGET", self._key(tenant, day), *_COUNTERS) for tenant in tenants]
        )
        return [Used(*(int(count or 0) for count in counts)) for counts in replies]

    def _key(self, tenant: str, day: date) -> str:
        name = f"{keys.USAGE}{tenant}:{(day - _EPOCH).days}"
        return self._partitions.of_tenant(tenant).key(name)


def _parse(
    tenant: str, day: date, counters: Mapping[str, str], wanted: str | None
) -> list[UsageRow]:
    found: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for name, count in counters.items():
        if name in _COUNTERS:  # of all rows together
            continue
        counter, user, model = name.split(":", 2)
        if wanted is None or user == wanted:
            found[user, model][counter] = int(count)
    return [
        UsageRow(
            tenant,
            day,
            user,
            model,
            Used(each["requests"], each["input"], each["cached"], each["output"]),
        )
        for (user, model), each in sorted(found.items())
    ]
