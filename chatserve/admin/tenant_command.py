"""`chatserve tenant`: what an operator does with the tenants.

Owns the actions and what they print. The rules and bounds are the store's.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from chatserve.admin.output import write_text
from chatserve.admin.quota_flags import TENANT_QUOTAS, quotas_in_words, with_flags
from chatserve.admin.store_access import all_tenants, service_store
from chatserve.admin.table import as_table, day_of
from chatserve.admin.tenant_config import ALL_MODELS, TenantConfig
from chatserve.errors import NotFound
from chatserve.store.codec import dump_json
from chatserve.store.connection import Store
from chatserve.store.tenant_removal import remove_tenant
from chatserve.store.tenants import Quotas, Tenant

_HEADINGS = ("TENANT", "SINCE", "MODELS", "QUOTAS")


async def run_tenant_command(config: TenantConfig, out: TextIO) -> int:
    """Do what was asked and return the exit code.

    Raises:
        ConfigError: A name or a quota is not allowed.
        NotFound, Conflict: There is no such tenant, or there is one already.
        StoreError: The store does not answer.
        OutputError: The output cannot be written.
    """
    async with service_store(config.redis_url, config.data_dir) as store:
        if config.action == "remove":
            write_text(out, await _remove(store, config))
        else:
            write_text(out, _printed(await _tenants(store, config), config))
    return 0


async def _tenants(store: Store, config: TenantConfig) -> list[Tenant]:
    """Do what was asked and return the tenants that it was about."""
    name = config.name or ""
    match config.action:
        case "add":
            quotas = Quotas.from_dict(with_flags(config, TENANT_QUOTAS, {}))
            tenant = Tenant(name, quotas=quotas, models=_models(config) or ())
            return [await store.tenants.add(tenant)]
        case "show":
            return [await _known(store, name)]
        case "set":
            return [await _set(store, config, name)]
        case _:
            return [tenant async for tenant in all_tenants(store)]


async def _set(store: Store, config: TenantConfig, name: str) -> Tenant:
    before = await _known(store, name)
    quotas = Quotas.from_dict(with_flags(config, TENANT_QUOTAS, before.quotas.to_dict()))
    tenant = await store.tenants.update(name, quotas=quotas, models=_models(config))
    if tenant is None:
        raise _no_tenant(name)
    return tenant


async def _remove(store: Store, config: TenantConfig) -> str:
    name = config.name or ""
    removed = await remove_tenant(store, name)
    if removed is None:
        raise _no_tenant(name)
    if config.as_json:
        return dump_json({"name": name, **asdict(removed)}) + "\n"
    return (
        f"removed tenant {name!r}: {removed.num_keys} keys, {removed.num_prompts} prompts, "
        f"{removed.num_sessions} conversations, {removed.num_responses} other responses\n"
    )


def _models(config: TenantConfig) -> tuple[str, ...] | None:
    """Return the models that were named, none for all of them, None where nothing was said."""
    return () if config.models == (ALL_MODELS,) else config.models


async def _known(store: Store, name: str) -> Tenant:
    tenant = await store.tenants.get(name)
    if tenant is None:
        raise _no_tenant(name)
    return tenant


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


def _no_tenant(name: str) -> NotFound:
    return NotFound(f"there is no tenant {name[:80]!r}")
