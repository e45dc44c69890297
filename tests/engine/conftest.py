"""Fixtures of the engine's tests: an empty store on the bundled server."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def store_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path_factory.mktemp("engine-store"))
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def store(store_server: EmbeddedServer) -> AsyncIterator[Store]:
    store = await open_store(store_server.url)
    await store.commands.call("FLUSHALL")
    yield store
    await store.aclose()
