"""`chatserve key`: what an operator does with the keys.

Owns the actions and what they print. A secret is printed when it is made and never again.
"""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any, TextIO, TypeVar

from chatserve.admin.key_config import KeyConfig
from chatserve.admin.output import write_text
from chatserve.admin.quota_flags import KEY_QUOTAS, quotas_in_words, with_flags
from chatserve.admin.store_access import known_tenant, service_store
from chatserve.admin.table import NOTHING, as_table, day_of, moment_of
from chatserve.errors import NotFound
from chatserve.identity import Role
from chatserve.store.api_keys import ApiKey, Expiry, IssuedKey, KeyChange, place_of
from chatserve.store.codec import dump_json
from chatserve.store.connection import Store
from chatserve.store.tenants import Quotas

T = TypeVar("T")

_AT_A_TIME = 200
_HEADINGS = (
    "KEY",
    "TENANT",
    "USER",
    "ROLE",
    "SINCE",
    "UNTIL (UTC)",
    "OLD SECRET UNTIL",
    "LABEL",
    "QUOTAS",
)


async def run_key_command(config: KeyConfig, out: TextIO) -> int:
    """Do what was asked and return the exit code.

    Raises:
        ConfigError: A name, the label or a quota is not allowed.
        NotFound, Conflict: There is no such key or tenant, or it has too many keys.
        StoreError: The store does not answer.
        OutputError: The output cannot be written.
    """
    async with service_store(config.redis_url, config.data_dir) as store:
        write_text(out, await _answer(store, config))
    return 0


async def _answer(store: Store, config: KeyConfig) -> str:
    """Do what was asked and return what is to be printed."""
    key_id = config.key_id or ""
    match config.action:
        case "add":
            return _issued(await store.api_keys.add(_new_key(config)), config)
        case "rotate":
            issued = await store.api_keys.rotate(key_id, config.grace_s)
            return _issued(_known(issued, key_id), config)
        case "set":
            return _printed([await _set(store, config, key_id)], config)
        case "show":
            return _printed([_known(await store.api_keys.get(key_id), key_id)], config)
        case "revoke":
            return await _revoke(store, config, key_id)
        case _:
            if config.tenant is not None:
                await known_tenant(store, config.tenant)
            return _printed([key async for key in _keys(store, config.tenant)], config)


async def _set(store: Store, config: KeyConfig, key_id: str) -> ApiKey:
    before = _known(await store.api_keys.get(key_id), key_id)
    quotas = with_flags(config, KEY_QUOTAS, before.quotas.to_dict())
    change = KeyChange(
        role=Role(config.role) if config.role is not None else None,
        label=config.label,
        expires_at=_expiry(config),
        quotas=Quotas.from_dict(quotas),
    )
    return _known(await store.api_keys.update(key_id, change), key_id)


async def _revoke(store: Store, config: KeyConfig, key_id: str) -> str:
    if not await store.api_keys.revoke(key_id):
        raise _no_key(key_id)
    return dump_json({"key_id": key_id}) + "\n" if config.as_json else f"revoked key {key_id}\n"


async def _keys(store: Store, tenant: str | None) -> AsyncIterator[ApiKey]:
    after = ""
    while some := await store.api_keys.list(_AT_A_TIME, tenant=tenant, after=after):
        for key in some:
            yield key
        after = place_of(some[-1])


def _new_key(config: KeyConfig) -> ApiKey:
    expires_at = _expiry(config)
    return ApiKey(
        "",
        config.tenant or "",
        config.user or "",
        Role(config.role or Role.MEMBER),
        label=config.label or "",
        expires_at=None if expires_at == "never" else expires_at,
        quotas=Quotas.from_dict(with_flags(config, KEY_QUOTAS, {})),
    )


def _expiry(config: KeyConfig) -> Expiry | None:
    """Return when a key is to expire, None where nothing was said."""
    if config.expires is None:
        return None
    return "never" if isinstance(config.expires, str) else int(time.time()) + config.expires


def _issued(issued: IssuedKey, config: KeyConfig) -> str:
    if config.is_quiet:
        return issued.secret + "\n"
    if config.as_json:
        return dump_json({**_document(issued.key), "secret": issued.secret}) + "\n"
    return (
        _printed([issued.key], config)
        + f"\nThe secret, which is shown this once:\n\n    {issued.secret}\n"
    )


def _printed(keys: Sequence[ApiKey], config: KeyConfig) -> str:
    if config.as_json:
        documents = [_document(key) for key in keys]
        return dump_json(documents if config.action == "list" else documents[0]) + "\n"
    return as_table(_HEADINGS, map(_row, keys))


def _document(key: ApiKey) -> dict[str, Any]:
    return {**asdict(key), "quotas": key.quotas.to_dict()}


def _row(key: ApiKey) -> tuple[str, ...]:
    return (
        key.key_id,
        key.tenant,
        key.user,
        key.role.value,
        day_of(key.created_at),
        _moment(key.expires_at) + (", expired" if key.is_expired else ""),
        _moment(key.old_secret_until),
        key.label or NOTHING,
        quotas_in_words(key.quotas.to_dict()),
    )


def _moment(time_s: int | None) -> str:
    return NOTHING if time_s is None else moment_of(time_s)


def _known(found: T | None, key_id: str) -> T:
    if found is None:
        raise _no_key(key_id)
    return found


def _no_key(key_id: str) -> NotFound:
    return NotFound(f"there is no key {key_id[:80]!r}")
