"""Fixtures of the gateway's tests: one store for all, emptied before each, and a service on it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from gateway.gateway_helpers import Service, run_service

from chatserve.store.connection import open_store
from chatserve.store.embedded import EmbeddedServer


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def store_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path_factory.mktemp("gateway-store"))
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def store_url(store_server: EmbeddedServer) -> str:
    """The address of an empty store."""
    store = await open_store(store_server.url)
    await store.commands.call("FLUSHALL")
    await store.aclose()
    return store_server.url


@pytest_asyncio.fixture
async def service(store_url: str) -> AsyncIterator[Service]:
    async with run_service(store_url) as service:
        yield service
