"""The keys by which callers are known, and how a secret is checked.

Owns the form of a secret, its digest, and the records of keys. Who may see them is not known here.

A secret is `csk_<key id>_<43 characters>`. It is shown once; stored is its SHA-256. A slow hash is
for passwords, which can be guessed: these are 256 random bits, and no number of guesses finds them,
so a fast one is as safe and costs a request nothing. A record is found by the id, which is no
secret, and the digests are compared in constant time. An unknown id costs the same comparison.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import orjson

from chatserve.error_codes import ErrorCode
from chatserve.errors import Conflict, InvalidRequest, NotFound
from chatserve.identity import NAME_RULE, Identity, Role, is_tenant_name, is_user_name
from chatserve.store import keys, scripts
from chatserve.store.codec import Value, dump_json, flatten, pairs
from chatserve.store.redis_client import RedisClient
from chatserve.store.tenants import NO_QUOTAS, Quotas, check_quotas

MAX_KEYS_OF_TENANT = 10_000
MAX_LABEL_CHARS = 200
MAX_GRACE_S = 30 * 24 * 3600
MAX_EXPIRY_S = 100 * 365 * 24 * 3600

Expiry = int | Literal["never"]
"""Seconds since 1970, or no end."""

_SECRET = re.compile(r"csk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_KEYS = keys.GLOBAL.key(keys.API_KEYS)
_NO_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True)
class Grant:
    """What a credential comes to: which key, and the digest of the secret that was shown.

    A login stands for the secret that it was made with, so it ends with that. `login` is the digest
    of its token where the credential was one, or a ticket that was issued to one; what such a grant
    has opened ends with the login. Never printed.
    """

    key_id: str
    digest: str = field(repr=False)
    login: str = field(default="", repr=False)

    def dump(self) -> str:
        return f"{self.key_id}:{self.digest}:{self.login}"

    @classmethod
    def load(cls, packed: str) -> "Grant":
        return cls(*packed.split(":"))


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key, without its secret. Times are in seconds since 1970; None never expires.

    `old_secret_until` says how long the secret from before the last rotation works, if it does.
    """

    key_id: str
    tenant: str
    user: str
    role: Role = Role.MEMBER
    label: str = ""
    created_at: int = 0
    expires_at: int | None = None
    quotas: Quotas = NO_QUOTAS
    old_secret_until: int | None = None

    @property
    def identity(self) -> Identity:
        return Identity(self.tenant, self.user, self.role, self.key_id)

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= time.time()


@dataclass(frozen=True, slots=True)
class KeyChange:
    """What is to be different about a key; None stays as it is. Quotas are replaced as a whole."""

    role: Role | None = None
    label: str | None = None
    expires_at: Expiry | None = None
    quotas: Quotas | None = None

    def applied_to(self, key: ApiKey) -> ApiKey:
        """Return a key as it is after the change."""
        expires_at = key.expires_at if self.expires_at is None else self.expires_at
        return replace(
            key,
            role=self.role or key.role,
            label=key.label if self.label is None else self.label,
            expires_at=None if expires_at == "never" else expires_at,
            quotas=key.quotas if self.quotas is None else self.quotas,
        )

    def names(self) -> list[str]:
        """Return the fields that are to be different."""
        return [each.name for each in fields(self) if getattr(self, each.name) is not None]


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key and its secret, which nobody can find out again."""

    key: ApiKey
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ValidKey:
    """A key whose secret was shown, and until when that holds; None is without end."""

    key: ApiKey
    valid_until: float | None

    @property
    def is_over(self) -> bool:
        return self.valid_until is not None and self.valid_until <= time.time()


def parse_secret(text: str) -> Grant | None:
    """Return what a secret comes to; None for a text of another form."""
    found = _SECRET.fullmatch(text)
    return Grant(found[1], digest_of(text)) if found else None


def digest_of(secret: str) -> str:
    """Return what is stored in place of a random secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiKeys:
    """The keys of the store. Every change rings the bell of `tenant_bell.py`.

    Owns: nothing in memory.
    Used from: the event loop, of gateways and of the operator's commands.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def add(self, key: ApiKey) -> IssuedKey:
        """Store a new key; its id and the time of its creation are made here.

        Raises:
            InvalidRequest: A name, the label, the expiry or a quota is not allowed.
            NotFound: There is no such tenant.
            Conflict: The tenant has as many keys as it may have.
        """
        now = int(time.time())
        _check(key)
        # An id begins with the time, so that their order is that of their age.
        stored = replace(key, key_id=f"{now:08x}{secrets.token_hex(4)}", created_at=now)
        secret = _new_secret(stored.key_id)
        record = flatten({**_to_fields(stored), "digest": digest_of(secret)})
        reply = await self._redis.run(
            scripts.ADD_KEY,
            keys.GLOBAL.root,
            stored.key_id,
            stored.tenant,
            MAX_KEYS_OF_TENANT,
            *record,
        )
        if reply == "no_tenant":
            raise NotFound(f"there is no tenant {key.tenant!r}", code=ErrorCode.TENANT_NOT_FOUND)
        if reply == "full":
            message = f"tenant {key.tenant!r} has {MAX_KEYS_OF_TENANT} keys, which is the limit"
            raise Conflict(message, code=ErrorCode.TOO_MANY_KEYS)
        assert reply == "done", f"a key id was drawn twice: {stored.key_id}"
        return IssuedKey(stored, secret)

    async def get(self, key_id: str) -> ApiKey | None:
        record = pairs(await self._redis.call("HGETALL", _key(key_id)))
        return _from_fields(key_id, record) if record else None

    async def list(
        self, limit: int, *, tenant: str | None = None, after: str = ""
    ) -> Sequence[ApiKey]:
        """Return up to `limit` keys by tenant and age, those after the place `after`.

        A place is a tenant, a slash and a key id, such as `place_of` returns.
        """
        begin, high = (f"{tenant}/", f"({tenant}0") if tenant is not None else ("", "+")
        low = f"({after}" if after > begin else f"[{begin}" if begin else "-"
        places = await self._redis.call("ZRANGEBYLEX", _KEYS, low, high, "LIMIT", 0, limit)
        ids = [place.partition("/")[2] for place in places]
        replies = await self._redis.call_many([("HGETALL", _key(key_id)) for key_id in ids])
        return [
            _from_fields(key_id, pairs(flat))
            for key_id, flat in zip(ids, replies, strict=True)
            if flat
        ]

    async def update(self, key_id: str, change: KeyChange) -> ApiKey | None:
        """Change a key and nothing else of it; None when there is no such key.

        Raises:
            InvalidRequest: The label, the expiry or a quota is not allowed.
        """
        before = await self.get(key_id)
        if before is None:
            return None
        after = change.applied_to(before)
        # An expiry that has passed is refused where it is new, and no obstacle where it stays.
        _check(after if change.expires_at is not None else replace(after, expires_at=None))
        written = {name: _to_fields(after)[name] for name in change.names()}
        is_known = await self._redis.run(
            scripts.CHANGE_KEY, keys.GLOBAL.root, key_id, *flatten(written)
        )
        return await self.get(key_id) if is_known else None

    async def rotate(self, key_id: str, grace_s: float = 0) -> IssuedKey | None:
        """Give a key another secret; None when there is no such key.

        The secret before holds for another `grace_s`, and any before that one no more.

        Raises:
            InvalidRequest: The grace is not allowed.
            Conflict: The key has expired, and so would the new secret have.
        """
        if not 0 <= grace_s <= MAX_GRACE_S:
            raise InvalidRequest(
                f"grace: must be from 0 to {MAX_GRACE_S} seconds, got {grace_s:g}", param="grace_s"
            )
        before = await self.get(key_id)
        if before is not None and before.is_expired:
            message = f"key {key_id} has expired: let it last longer first, or issue another"
            raise Conflict(message, code=ErrorCode.KEY_EXPIRED)
        secret = _new_secret(key_id)
        old_until = time.time() + grace_s if grace_s else ""
        is_known = await self._redis.run(
            scripts.ROTATE_KEY, keys.GLOBAL.root, key_id, digest_of(secret), old_until
        )
        key = await self.get(key_id) if is_known else None
        return IssuedKey(key, secret) if key is not None else None

    async def revoke(self, key_id: str) -> bool:
        """End a key; False when there is none."""
        return bool(await self._redis.run(scripts.REVOKE_KEY, keys.GLOBAL.root, key_id))

    async def check(self, grant: Grant) -> ValidKey | None:
        """Return the key of a grant, if it holds now."""
        opened = await self._opened(grant)
        return None if opened is None or opened.is_over else opened

    async def has_expired(self, grant: Grant) -> bool:
        """Return whether a grant is of a secret of ours, whose key has expired."""
        opened = await self._opened(grant)
        return opened is not None and opened.key.is_expired

    async def _opened(self, grant: Grant) -> ValidKey | None:
        """Return the key of a grant whose secret is right, also when its time is over."""
        record = pairs(await self._redis.call("HGETALL", _key(grant.key_id)))
        is_current = _is_same(grant.digest, record.get("digest"))
        is_old = _is_same(grant.digest, record.get("old_digest"))
        if not (is_current or is_old):
            return None
        key = _from_fields(grant.key_id, record)
        ends: list[float] = [key.expires_at] if key.expires_at is not None else []
        if not is_current:
            ends.append(float(record["old_until"]))
        return ValidKey(key, min(ends, default=None))


def place_of(key: ApiKey) -> str:
    """Return where a key stands in the list of all."""
    return f"{key.tenant}/{key.key_id}"


def _new_secret(key_id: str) -> str:
    return f"csk_{key_id}_{secrets.token_urlsafe(32)}"


def _is_same(digest: str, stored: str | None) -> bool:
    is_same = hmac.compare_digest(digest, stored or _NO_DIGEST)
    return is_same and stored is not None


def _check(key: ApiKey) -> None:
    for name, complaint in _complaints(key, int(time.time())):
        raise InvalidRequest(f"{name}: {complaint}", param=name)
    check_quotas(key.quotas)


def _complaints(key: ApiKey, now: int) -> Iterator[tuple[str, str]]:
    if not is_tenant_name(key.tenant):
        yield "tenant", f"must be {NAME_RULE}, got {key.tenant[:80]!r}"
    if not is_user_name(key.user):
        yield (
            "user",
            f"must be up to 128 letters, digits and any of . _ @ + -, got {key.user[:80]!r}",
        )
    if len(key.label) > MAX_LABEL_CHARS or not key.label.isprintable():
        yield "label", f"must be at most {MAX_LABEL_CHARS} printable characters"
    if key.expires_at is not None and not now < key.expires_at <= now + MAX_EXPIRY_S:
        yield "expires_at", "must be in the future, in seconds since 1970"
    if key.quotas.pinned_pages is not None:
        yield "quotas.pinned_pages", "is of a tenant only, as its prompts are"


def _to_fields(key: ApiKey) -> dict[str, Value]:
    """Return what is stored, all but the id and the tenant, which the script writes."""
    return {
        "user": key.user,
        "role": key.role.value,
        "label": key.label,
        "created_at": key.created_at,
        "expires_at": "" if key.expires_at is None else key.expires_at,
        "quotas": dump_json(key.quotas.to_dict()),
    }


def _from_fields(key_id: str, record: dict[str, str]) -> ApiKey:
    return ApiKey(
        key_id=key_id,
        tenant=record["tenant"],
        user=record["user"],
        role=Role(record["role"]),
        label=record["label"],
        created_at=int(record["created_at"]),
        expires_at=int(record["expires_at"]) if record["expires_at"] else None,
        quotas=Quotas.from_dict(orjson.loads(record["quotas"])),
        old_secret_until=_if_ahead(record.get("old_until")),
    )


def _if_ahead(time_s: str | None) -> int | None:
    return int(float(time_s)) if time_s and float(time_s) > time.time() else None


def _key(key_id: str) -> str:
    return keys.GLOBAL.key(keys.API_KEY + key_id)
