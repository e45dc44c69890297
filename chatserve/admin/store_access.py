"""The store that a command of the operator works on.

Owns the choice: the one that was named, or else the bundled one of the service that runs on a data
folder. Starts nothing.
"""

from pathlib import Path

from chatserve.errors import StoreError
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded_files import STORE_FOLDER, socket_url


async def open_service_store(redis_url: str | None, data_dir: Path) -> Store:
    """Connect to the store of a service.

    Raises:
        StoreError: Nobody answers there.
    """
    if redis_url is not None:
        return await open_store(redis_url)
    try:
        return await open_store(socket_url(data_dir / STORE_FOLDER))
    except StoreError as error:
        raise StoreError(
            f"no `chatserve serve` with a store of its own runs on {data_dir}; "
            "start it, or name the store by --redis-url"
        ) from error
