"""Fixtures of the store's tests: every test runs on each server that is there.

`store` is on one server for the whole run, emptied before each test: the bundled one, Redis where
it is there, or a cluster of one node. `own_server` belongs to one test, which may stop and restart
it.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio
from store.cluster_server import one_node_cluster
from store.store_helpers import CLUSTER, contract_servers, server_binaries

from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.log_reader import LogReader


@pytest.fixture(scope="session", params=server_binaries())
def server_binary(request: pytest.FixtureRequest) -> Path | None:
    """The server to test on; None is the bundled one."""
    return cast("Path | None", request.param)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(
    server_binary: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path_factory.mktemp("store"), binary=server_binary)
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=contract_servers())
async def server_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """The address of a server, or of a cluster, that lives as long as the tests."""
    folder = tmp_path_factory.mktemp("contract")
    if request.param == CLUSTER:
        async with one_node_cluster(folder) as url:
            yield url
        return
    server = EmbeddedServer(folder, binary=request.param)
    await server.start()
    yield server.url
    await server.stop()


@pytest_asyncio.fixture
async def store(server_url: str) -> AsyncIterator[Store]:
    """An empty store."""
    store = await open_store(server_url)
    await store.commands.call("FLUSHALL")
    yield store
    await store.aclose()


@pytest_asyncio.fixture
async def reader(store: Store) -> AsyncIterator[LogReader]:
    reader = LogReader(store)
    reader.start()
    yield reader
    await reader.aclose()


@pytest_asyncio.fixture
async def own_server(server_binary: Path | None, tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path / "store", binary=server_binary)
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def own_store(own_server: EmbeddedServer) -> AsyncIterator[Store]:
    store = await open_store(own_server.url)
    yield store
    await store.aclose()
