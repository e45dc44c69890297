"""Fixtures of the gateway's tests: one store for all, emptied before each, and a service on it.

Where no test changes anything that the next one sees, a whole module shares one service: its tests
take `shared_service`, which lives in a database of its own, and the module says
`pytestmark = pytest.mark.asyncio(loop_scope="module")`.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from gateway.gateway_helpers import Service, run_service
from gateway.secured_helpers import Secured, run_secured_service

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
    await store.commands.call("FLUSHDB")
    await store.aclose()
    return store_server.url


@pytest_asyncio.fixture
async def service(store_url: str) -> AsyncIterator[Service]:
    async with run_service(store_url) as service:
        yield service


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_service(store_server: EmbeddedServer) -> AsyncIterator[Service]:
    url = store_server.url.replace("db=0", "db=1")
    store = await open_store(url)
    await store.commands.call("FLUSHDB")
    await store.aclose()
    async with run_service(url) as service:
        yield service


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def secured(store_server: EmbeddedServer) -> AsyncIterator[Secured]:
    """A service that needs keys, for the whole module; a test that ends a key makes its own."""
    async with run_secured_service(store_server.url.replace("db=0", "db=2")) as secured:
        yield secured
