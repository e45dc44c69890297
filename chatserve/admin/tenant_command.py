"""`chatserve tenant`: what an operator does with the tenants.

Owns the actions, what they print, and what they ask. The rules and bounds are the store's.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from chatserve.admin.output import Console, write_lines, write_text
from chatserve.admin.quota_flags import TENANT_QUOTAS, quotas_in_words, with_flags
from chatserve.admin.store_access import all_tenants, known_tenant, no_tenant, service_store
from chatserve.admin.table import as_table, day_of
from chatserve.admin.tenant_config import ALL_MODELS, TenantConfig
from chatserve.engine.api import DEFAULT_TENANT
from chatserve.errors import ConfigError
from chatserve.identity import LOCAL, LOCAL_USER
from chatserve.store.codec import dump_json
from chatserve.store.connection import Store
from chatserve.store.tenant_removal import remove_tenant
from chatserve.store.tenants import Quotas, Tenant
from chatserve.wording import counted

_FIRST_TENANT = """
This is the first tenant. From now on everything needs a key: pages and connections that are open
without one are closed. To make one:
    chatserve key add --tenant {name} --user NAME --role operator
"""

_EARLIER_CONVERSATIONS = f"""
There are conversations from before. They stay with the user {LOCAL_USER!r} of the tenant
{DEFAULT_TENANT!r}, where no other key finds them. For a key that opens them:
"""
_ADD_OPEN_TENANT = f"    chatserve tenant add {DEFAULT_TENANT}\n"
_ADD_OPEN_KEY = f"    chatserve key add --tenant {DEFAULT_TENANT} --user {LOCAL_USER}\n"

_HEADINGS = ("TENANT", "SINCE", "MODELS", "QUOTAS")


async def run_tenant_command(config: TenantConfig, console: Console) -> int:
    """Do what was asked and return the exit code, 1 for a removal that was not confirmed.

    Raises:
        ConfigError: A name or a quota is not allowed, or nobody is there to confirm a removal.
        NotFound, Conflict: There is no such tenant, or there is one already.
        StoreError: The store does not answer.
        OutputError: The output cannot be written.
    """
    async with service_store(config.redis_url, config.data_dir) as store:
        if config.action == "remove":
            return await _remove(store, config, console)
        is_first = config.action == "add" and not await store.tenants.any()
        tenants = await _tenants(store, config)
        write_text(console.out, _printed(tenants, config))
        if config.models is not None:
            await _note_unserved(store, tenants[0], console)
        if is_first:
            await _note_first(store, tenants[0].name, console)
    return 0


async def _note_first(store: Store, name: str, console: Console) -> None:
    """Say what ends with the first tenant, and how conversations from before are reached."""
    note = _FIRST_TENANT.format(name=name)
    if await _has_earlier_conversations(store):
        add_tenant = "" if name == DEFAULT_TENANT else _ADD_OPEN_TENANT
        note += _EARLIER_CONVERSATIONS + add_tenant + _ADD_OPEN_KEY
    write_lines(console.progress, note.splitlines())


async def _has_earlier_conversations(store: Store) -> bool:
    listed = await store.sessions.list(LOCAL.owner, 1)
    return bool(listed or await store.sessions.list(LOCAL.owner, 1, archived=True))


async def _note_unserved(store: Store, tenant: Tenant, console: Console) -> None:
    """Say which models nobody serves now: one that may come yet, or a slip."""
    served = sorted({beat.model for beat in await store.workers.live()})
    unserved = [name for name in tenant.models if name not in served]
    if unserved:
        known = ", ".join(served) or "none"
        line = f"note: nobody serves {', '.join(map(repr, unserved))} now; served: {known}"
        write_lines(console.progress, [line])


async def _tenants(store: Store, config: TenantConfig) -> list[Tenant]:
    """Do what was asked and return the tenants that it was about."""
    name = config.name or ""
    match config.action:
        case "add":
            quotas = Quotas.from_dict(with_flags(config, TENANT_QUOTAS, {}))
            tenant = Tenant(name, quotas=quotas, models=_models(config) or ())
            return [await store.tenants.add(tenant)]
        case "show":
            return [await known_tenant(store, name)]
        case "set":
            return [await _set(store, config, name)]
        case _:
            return [tenant async for tenant in all_tenants(store)]


async def _set(store: Store, config: TenantConfig, name: str) -> Tenant:
    before = await known_tenant(store, name)
    quotas = Quotas.from_dict(with_flags(config, TENANT_QUOTAS, before.quotas.to_dict()))
    tenant = await store.tenants.update(name, quotas=quotas, models=_models(config))
    if tenant is None:
        raise no_tenant(name)
    return tenant


async def _remove(store: Store, config: TenantConfig, console: Console) -> int:
    name = config.name or ""
    if not config.is_confirmed and not await _is_confirmed(store, name, console):
        write_lines(console.progress, ["nothing was removed"])
        return 1
    removed = await remove_tenant(store, name)
    if removed is None:
        raise no_tenant(name)
    if config.as_json:
        write_text(console.out, dump_json({"name": name, **asdict(removed)}) + "\n")
        return 0
    counts = (
        counted(removed.num_keys, "key"),
        counted(removed.num_prompts, "prompt"),
        counted(removed.num_sessions, "conversation"),
        counted(removed.num_responses, "other response"),
    )
    write_lines(console.out, [f"removed tenant {name!r}: {', '.join(counts)}"])
    return 0


async def _is_confirmed(store: Store, name: str, console: Console) -> bool:
    await known_tenant(store, name)
    if console.answers is None:
        raise ConfigError("tenant remove: this cannot be undone; say --yes where nobody can answer")
    return console.confirms(
        f"Erase tenant {name!r} with all its keys, prompts, conversations and responses, for good?"
    )


def _models(config: TenantConfig) -> tuple[str, ...] | None:
    """Return the models that were named, none for all of them, None where nothing was said."""
    return () if config.models == (ALL_MODELS,) else config.models


def _printed(tenants: Sequence[Tenant], config: TenantConfig) -> str:
    if config.as_json:
        documents = [_document(tenant) for tenant in tenants]
        return dump_json(documents if config.action == "list" else documents[0]) + "\n"
    return as_table(_HEADINGS, map(_row, tenants))


def _document(tenant: Tenant) -> dict[str, Any]:
    document = {**asdict(tenant), "quotas": tenant.quotas.to_dict()}
    del document["mark"]  # of no use to anybody else
    return document


def _row(tenant: Tenant) -> tuple[str, ...]:
    name = f"{tenant.name} (being removed)" if tenant.is_closed else tenant.name
    models = ",".join(tenant.models) or ALL_MODELS
    return name, day_of(tenant.created_at), models, quotas_in_words(tenant.quotas.to_dict())
