"""The tenants: who they are, and what they may use.

Owns the records and how they are stored. Keys are in `api_keys.py`; what removing a tenant takes
with it is told in `tenant_removal.py`; enforcing quotas is the business of `limits.py`.

A tenant that is being removed is closed first: it gets no new keys and its keys stop working, while
what belongs to it is erased piece by piece.
"""

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import orjson

from chatserve.error_codes import ErrorCode
from chatserve.errors import Conflict, InvalidRequest
from chatserve.identity import NAME_RULE, is_tenant_name
from chatserve.store import keys, scripts
from chatserve.store.codec import Value, dump_json, pairs
from chatserve.store.redis_client import RedisClient

MAX_TENANTS = 100_000
MAX_MODELS = 64
MAX_MODEL_CHARS = 256
MAX_QUOTA = 10**12

_TENANTS = keys.GLOBAL.key(keys.TENANTS)


@dataclass(frozen=True, slots=True)
class Quotas:
    """The most that a tenant, or one key, may use; None is no limit.

    A tenant's are for all its keys together, a key's for that key alone, and both hold at once.
    Pages are pinned by a tenant's prompts, so no key has a quota of them.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    parallel_responses: int | None = None
    connections: int | None = None
    pinned_pages: int | None = None

    def to_dict(self) -> dict[str, int]:
        """Return the quotas that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, int]) -> "Quotas":
        return cls(**values)


NO_QUOTAS = Quotas()


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant. It may use the models that are named, or all where none is.

    `created_at` is in seconds since 1970. One that `is_closed` is being removed. `mark` is no other
    tenant's, not even of one that had the same name before.
    """

    name: str
    created_at: int = 0
    quotas: Quotas = NO_QUOTAS
    models: tuple[str, ...] = ()
    is_closed: bool = False
    mark: str = ""

    def may_use(self, model: str) -> bool:
        return not self.models or model in self.models


class Tenants:
    """The tenants of the store. Every change rings the bell of `tenant_bell.py`.

    Owns: nothing in memory.
    Used from: the event loop, of gateways and of the operator's commands.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def add(self, tenant: Tenant) -> Tenant:
        """Store a new tenant, and return it as it is stored.

        Raises:
            InvalidRequest: The name, a model's name or a quota is not allowed.
            Conflict: There is one of this name, or there are as many as there may be.
        """
        _check(tenant)
        # The mark also tells this add, when it is sent twice, from another's of the same name.
        stored = replace(tenant, created_at=int(time.time()), mark=secrets.token_hex(8))
        created: list[Value] = ["created_at", stored.created_at, "mark", stored.mark]
        reply = await self._put(
            "new", stored.name, [*created, *_changes(stored.quotas, stored.models)]
        )
        if reply == "done":
            return stored
        if reply == "full":
            message = f"there are {MAX_TENANTS} tenants, which is the limit"
            raise Conflict(message, code=ErrorCode.TOO_MANY_TENANTS)
        raise Conflict(
            f"there is a tenant {tenant.name!r} already", code=ErrorCode.TENANT_EXISTS, param="name"
        )

    async def get(self, name: str) -> Tenant | None:
        record = pairs(await self._redis.call("HGETALL", _key(name)))
        return _from_record(name, record) if record else None

    async def quotas_of(self, names: Iterable[str]) -> dict[str, Quotas]:
        """Return the quotas of those of these tenants that there are."""
        known = list(names)
        packed = await self._redis.call_many([("HGET", _key(name), "quotas") for name in known])
        found = zip(known, packed, strict=True)
        return {name: Quotas.from_dict(orjson.loads(each)) for name, each in found if each}

    async def any(self) -> bool:
        """Return whether there is a tenant at all."""
        return bool(await self._redis.call("EXISTS", _TENANTS))

    async def list(self, limit: int, after: str = "") -> Sequence[Tenant]:
        """Return up to `limit` tenants by name, those after the name `after`."""
        names = await self._redis.call(
            "ZRANGEBYLEX", _TENANTS, f"({after}" if after else "-", "+", "LIMIT", 0, limit
        )
        replies = await self._redis.call_many([("HGETALL", _key(name)) for name in names])
        return [
            _from_record(name, pairs(flat))
            for name, flat in zip(names, replies, strict=True)
            if flat
        ]

    async def update(
        self, name: str, *, quotas: Quotas | None = None, models: Sequence[str] | None = None
    ) -> Tenant | None:
        """Set what is given and nothing else; None when there is no such tenant.

        Raises:
            InvalidRequest: A quota or a model's name is not allowed.
        """
        _check(Tenant(name, quotas=quotas or NO_QUOTAS, models=tuple(models or ())))
        changes = _changes(quotas, models)
        is_done = await self._put("change", name, changes) == "done"
        return await self.get(name) if is_done else None

    async def close(self, name: str) -> bool:
        """Let a tenant get nothing any more; False when there is none. Again does no harm."""
        return await self._put("close", name, ["is_closed", 1]) == "done"

    async def forget(self, name: str) -> None:
        """Take a closed tenant, of which nothing is left, out of the list."""
        await self._redis.run(scripts.FORGET_TENANT, keys.GLOBAL.root, name)

    async def _put(self, mode: str, name: str, changes: Sequence[Value]) -> str:
        reply: str = await self._redis.run(
            scripts.PUT_TENANT, keys.GLOBAL.root, mode, name, MAX_TENANTS, *changes
        )
        return reply


def check_quotas(quotas: Quotas) -> None:
    """Raise InvalidRequest for the first quota that is not allowed."""
    for field in fields(Quotas):
        value = getattr(quotas, field.name)
        if value is not None and not 0 <= value <= MAX_QUOTA:
            raise InvalidRequest(
                f"{field.name}: must be from 0 to {MAX_QUOTA}, got {value}",
                param=f"quotas.{field.name}",
            )


def _check(tenant: Tenant) -> None:
    for field, complaint in _complaints(tenant):
        raise InvalidRequest(f"{field}: {complaint}", param=field)
    check_quotas(tenant.quotas)


def _complaints(tenant: Tenant) -> Iterator[tuple[str, str]]:
    if not is_tenant_name(tenant.name):
        yield "name", f"must be {NAME_RULE}, got {tenant.name[:80]!r}"
    if len(tenant.models) > MAX_MODELS:
        yield "models", f"must be at most {MAX_MODELS}, got {len(tenant.models)}"
    for model in tenant.models:
        if not 1 <= len(model) <= MAX_MODEL_CHARS or not model.isprintable():
            yield "models", f"must be names of models, got {model[:80]!r}"


def _changes(quotas: Quotas | None, models: Sequence[str] | None) -> list[Value]:
    """Return the fields of what is given, and their values."""
    changes: list[Value] = []
    if quotas is not None:
        changes += ["quotas", dump_json(quotas.to_dict())]
    if models is not None:
        changes += ["models", dump_json(list(models))]
    return changes


def _from_record(name: str, record: dict[str, Any]) -> Tenant:
    return Tenant(
        name=name,
        created_at=int(record["created_at"]),
        quotas=Quotas.from_dict(orjson.loads(record["quotas"])),
        models=tuple(orjson.loads(record["models"])),
        is_closed="is_closed" in record,
        mark=record["mark"],
    )


def _key(name: str) -> str:
    return keys.GLOBAL.key(keys.TENANT + name)
