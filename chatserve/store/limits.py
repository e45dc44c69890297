"""What tenants and keys may use at a time and in a minute, and what is left of it.

Owns the records that enqueue takes and gives, and reading what is left between two requests. How a
limit is kept stands in `lua/limits.lua`: a request reserves what it may use at most when it is
queued and gives back the rest in the script that ends it, so that no number of gateways and no
process that is killed makes a limit pass more than it should.

A scope is whatever has limits of its own: a tenant, or one key of it. All scopes of a tenant lie in
its partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from chatserve.store import scripts
from chatserve.store.codec import Command, dump_json
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient
from chatserve.store.tenants import Quotas


def tenant_scope(tenant: str) -> str:
    """Return the name of the scope that all keys of a tenant share."""
    return f"tenant:{tenant}"


@dataclass(frozen=True, slots=True)
class ScopeLimits:
    """The limits of one scope; None is no limit. `name` is that of the scope, for its keys."""

    name: str
    requests: int | None = None
    tokens: int | None = None
    parallel: int | None = None

    @classmethod
    def of_tenant(cls, tenant: str, quotas: Quotas) -> Self:
        return cls._of(tenant_scope(tenant), quotas)

    @classmethod
    def of_key(cls, key_id: str, quotas: Quotas) -> Self:
        return cls._of(f"key:{key_id}", quotas)

    @classmethod
    def _of(cls, name: str, quotas: Quotas) -> Self:
        return cls(
            name,
            requests=quotas.requests_per_minute,
            tokens=quotas.tokens_per_minute,
            parallel=quotas.parallel_responses,
        )

    @property
    def is_limited(self) -> bool:
        return any(limit is not None for limit in (self.requests, self.tokens, self.parallel))

    def to_dict(self) -> dict[str, Any]:
        """Return what scripts take: what is not limited is absent."""
        limits = {"requests": self.requests, "tokens": self.tokens, "parallel": self.parallel}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        return {"name": self.name, **given}


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a request reserves of each scope: itself, and the most tokens that it can come to.

    `together` counts the requests of the same size that come with it, this one included: it is
    refused where they would not all fit.
    """

    scopes: tuple[ScopeLimits, ...]
    tokens: int
    together: int = 1

    def to_dict(self) -> dict[str, Any]:
        scopes = [scope.to_dict() for scope in self.scopes]
        return {"scopes": scopes, "tokens": self.tokens, "together": self.together}


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of one limit: all of it is there again after `reset_ms` without requests."""

    limit: int
    remaining: int
    reset_ms: int


@dataclass(frozen=True, slots=True)
class Allowances:
    """What is left in a minute, each of the scope that has the least; None where none has a limit.

    False where neither is limited.
    """

    requests: Allowance | None = None
    tokens: Allowance | None = None

    @classmethod
    def parse(cls, reply: Sequence[Sequence[int] | None]) -> Self:
        return cls(*(Allowance(*each) if each else None for each in reply))

    def __bool__(self) -> bool:
        return self.requests is not None or self.tokens is not None


NO_ALLOWANCES = Allowances()


@dataclass(frozen=True, slots=True)
class Limited:
    """A request that was not taken: it needs more of one limit than is left.

    `name` is `requests`, `tokens` or `parallel`. `retry_ms` is None where it needs more than the
    whole limit, so that waiting is no use.
    """

    scope: str
    name: str
    limit: int
    remaining: int
    needed: int
    retry_ms: int | None
    allowances: Allowances

    @classmethod
    def parse(cls, reply: Sequence[Any]) -> Self:
        scope, name, limit, remaining, needed, retry_ms, allowances = reply
        parsed = Allowances.parse(allowances)
        return cls(scope, name, limit, remaining, needed, retry_ms, parsed)


class Limits:
    """Tells what is left, and takes requests that are not queued.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def read(self, tenant: str, scopes: Sequence[ScopeLimits]) -> Allowances:
        """Return what is left under the limits of some scopes of one tenant."""
        return (await self.read_many([(tenant, scopes)]))[0]

    async def read_many(
        self, scopes_of_tenants: Sequence[tuple[str, Sequence[ScopeLimits]]]
    ) -> list[Allowances]:
        """Return what is left under some scopes of each of several tenants, in one round trip."""
        calls: list[Command] = [
            (
                self._partitions.of_tenant(tenant).root,
                dump_json([scope.to_dict() for scope in scopes]),
            )
            for tenant, scopes in scopes_of_tenants
        ]
        return [
            Allowances.parse(each)
            for each in await self._redis.run_many(scripts.READ_LIMITS, calls)
        ]

    async def room(self, tenant: str, reservation: Reservation) -> Limited | None:
        """Return why a request would be refused now, None when it would be taken."""
        return await self._ask(tenant, reservation, "0")

    async def take(self, tenant: str, reservation: Reservation) -> Limited | None:
        """Take a request that makes no answer; else return why it is refused."""
        return await self._ask(tenant, reservation, "1")

    async def _ask(self, tenant: str, reservation: Reservation, takes: str) -> Limited | None:
        root = self._partitions.of_tenant(tenant).root
        packed = dump_json(reservation.to_dict())
        reply = await self._redis.run(scripts.TAKE_REQUEST, root, packed, takes)
        return Limited.parse(reply[1:]) if reply else None
