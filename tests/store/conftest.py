"""Fixtures of the store's tests: every test runs on each server that is there.

`server` is one server for the whole run, emptied before each test; `own_server` belongs to one
test, which may stop and restart it.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio
from store.store_helpers import server_binaries

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


@pytest.fixture
def server_url(server: EmbeddedServer) -> str:
    return server.url


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
