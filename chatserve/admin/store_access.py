"""The store that a command of the operator works on.

Owns the choice: the one that was named, or else the bundled one of the service that runs on a data
folder. Starts nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from chatserve.errors import ConfigError, InvalidRequest, NotFound, StoreError
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded_files import STORE_FOLDER, socket_url
from chatserve.store.tenants import Tenant

_TENANTS_AT_A_TIME = 200


@asynccontextmanager
async def service_store(redis_url: str | None, data_dir: Path) -> AsyncIterator[Store]:
    """Yield the store of a service, connected.

    Raises:
        StoreError: Nobody answers there.
        ConfigError: The store refuses a value, which here came from the command line.
    """
    store = await _open(redis_url, data_dir)
    try:
        yield store
    except InvalidRequest as error:
        raise ConfigError(error.message) from error
    finally:
        await store.aclose()


async def all_tenants(store: Store) -> AsyncIterator[Tenant]:
    """Yield every tenant, by name."""
    after = ""
    while some := await store.tenants.list(_TENANTS_AT_A_TIME, after):
        for tenant in some:
            yield tenant
        after = some[-1].name


async def known_tenant(store: Store, name: str) -> Tenant:
    """Return the tenant of a name, or raise NotFound."""
    tenant = await store.tenants.get(name)
    if tenant is None:
        raise no_tenant(name)
    return tenant


def no_tenant(name: str) -> NotFound:
    return NotFound(f"there is no tenant {name[:80]!r}")


async def _open(redis_url: str | None, data_dir: Path) -> Store:
    if redis_url is not None:
        return await open_store(redis_url)
    try:
        return await open_store(socket_url(data_dir / STORE_FOLDER))
    except StoreError as error:
        raise StoreError(
            f"no `chatserve serve` with a store of its own runs on {data_dir}; "
            "start it, or name the store by --redis-url"
        ) from error
