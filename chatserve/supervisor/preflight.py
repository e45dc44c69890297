"""What can be known to fail before a model is fetched and before anything is started.

Owns the order: what is cheap to know comes first. Each obstacle is one line. Loads no torch; what
only torch knows is asked in a process that ends again.
"""

import asyncio
import subprocess
import sys

from chatserve.config import ServeConfig
from chatserve.errors import ConfigError, StoreError
from chatserve.listener import bind
from chatserve.store.connection import open_store

_ASK_FOR_CUDA = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 3)"
_NO_CUDA = 3


def check_surroundings(config: ServeConfig) -> None:
    """Return when the address is free, the store answers and the device is there.

    Raises:
        ConfigError: The address is taken, or there is no such device.
        StoreError: The store that was named does not answer, or is no good.
    """
    bind(config.gateway.host, config.gateway.port).close()
    if not config.uses_bundled_store:
        asyncio.run(_check_store(config.gateway.redis_url))
    if config.engine.device == "cuda":
        _check_cuda()


async def _check_store(url: str) -> None:
    try:
        store = await open_store(url)
    except StoreError as error:
        raise StoreError(f"--redis-url: {error}; is it running?") from error
    await store.aclose()


def _check_cuda() -> None:
    # -P as for the children: a torch.py in the folder where `serve` was started is none of ours.
    asked = subprocess.run([sys.executable, "-P", "-c", _ASK_FOR_CUDA], check=False)
    if asked.returncode == _NO_CUDA:
        raise ConfigError("--device cuda: torch finds no CUDA device here; use --device cpu")
