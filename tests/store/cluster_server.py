"""A cluster of one node for the contract tests: the bundled server with all slots.

What a cluster demands of keys and scripts, one node demands already: a script that touches the keys
of two slots is refused, and so is a command.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from chatserve.errors import StoreError
from chatserve.store.connection import open_store
from chatserve.store.embedded_files import bundled_binary
from chatserve.store.redis_client import RedisClient

START_TIMEOUT_S = 20.0


@asynccontextmanager
async def one_node_cluster(folder: Path) -> AsyncIterator[str]:
    """Run a cluster and yield its address."""
    port = _free_port()
    process = await asyncio.create_subprocess_exec(
        str(bundled_binary()),
        *("--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)),
        *("--cluster-enabled", "yes", "--cluster-port", str(_free_port())),
        *("--save", "", "--appendonly", "no", "--loglevel", "warning"),
        stdout=asyncio.subprocess.DEVNULL,
    )
    url = f"redis://127.0.0.1:{port}"
    try:
        await _take_all_slots(url)
        yield url
    finally:
        process.kill()
        await process.wait()


async def _take_all_slots(url: str) -> None:
    node = RedisClient.for_commands(url)
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            try:
                await node.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
                break
            except StoreError:
                await asyncio.sleep(0.02)
        while "cluster_state:ok" not in await node.call("CLUSTER", "INFO"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await node.aclose()
    await (await open_store(url)).aclose()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
