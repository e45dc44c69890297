"""Fixtures of the engine's tests: an empty store on the bundled server, a terminal on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from engine.prompt_terminal import Terminal

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


@pytest.fixture
def terminal(store: Store, store_server: EmbeddedServer, tmp_path: Path) -> Terminal:
    """A terminal on the store."""
    return Terminal(store_server.url, tmp_path)
