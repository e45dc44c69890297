"""The gateway as a process of its own."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from gateway.gateway_helpers import TIMEOUT_S

from chatserve import __version__
from chatserve.errors import ConfigError
from chatserve.listener import bind
from chatserve.store.connection import open_store
from chatserve.store.tenants import Tenant

_PROGRAM = """
import asyncio, sys
from chatserve.config import GatewayConfig
from chatserve.gateway.server import run_gateway
from chatserve.log import configure_logging

if len(sys.argv) > 3:
    configure_logging("info", "gateway")
host = sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1"
asyncio.run(run_gateway(GatewayConfig(host, int(sys.argv[1]), redis_url=sys.argv[2])))
print("torch" if "torch" in sys.modules else "ended in order")
"""


def free_port() -> int:
    with bind("127.0.0.1", 0) as listener:
        port: int = listener.getsockname()[1]
    return port


@asynccontextmanager
async def gateway_process(port: int, store_url: str, *host: str) -> AsyncIterator[Process]:
    """Run a gateway; with a host its log is on standard error."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PROGRAM, str(port), store_url, *host, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def wait_until_live(port: int) -> None:
    async with asyncio.timeout(TIMEOUT_S), httpx.AsyncClient() as http:
        while True:
            try:
                await http.get(f"http://127.0.0.1:{port}/health")
            except httpx.TransportError:
                await asyncio.sleep(0.05)
            else:
                return


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_the_process_in_order_and_without_torch(
    store_url: str, number: signal.Signals
) -> None:
    port = free_port()
    async with gateway_process(port, store_url) as process:
        await wait_until_live(port)

        process.send_signal(number)

        output, errors = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    assert (process.returncode, output) == (0, b"ended in order\n"), errors


@pytest.mark.parametrize(
    ("host", "tenants", "needs_first_key"),
    [("127.0.0.1", [], False), ("0.0.0.0", [], True), ("0.0.0.0", ["acme"], False)],
)
async def test_start_is_told_with_address_and_version_and_how_to_make_a_first_key(
    store_url: str, host: str, tenants: list[str], needs_first_key: bool
) -> None:
    """A gateway used to say nothing, and an empty one on 0.0.0.0 refused everybody in silence."""
    store = await open_store(store_url)
    await store.commands.call("FLUSHDB")
    for tenant in tenants:
        await store.tenants.add(Tenant(tenant))
    await store.aclose()
    port = free_port()
    async with gateway_process(port, store_url, host) as process:
        await wait_until_live(port)
        process.send_signal(signal.SIGTERM)
        _, log = await asyncio.wait_for(process.communicate(), TIMEOUT_S)

    start = f"listening on http://{host}:{port}, version {__version__}; nothing is answered before"
    assert start.encode() in log
    assert (b"chatserve tenant add NAME" in log) == needs_first_key


async def test_process_without_a_store_ends_with_an_error() -> None:
    async with gateway_process(free_port(), "unix:///nowhere/store.sock") as process:
        _, errors = await asyncio.wait_for(process.communicate(), TIMEOUT_S)

    assert process.returncode == 1
    assert b"StoreAway" in errors


def test_port_in_use_is_one_clear_line() -> None:
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]

        with pytest.raises(ConfigError, match=rf"cannot listen on 127.0.0.1:{port}"):
            bind("127.0.0.1", port)


def test_host_that_is_no_address_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match="--host"):
        bind("no such host", 8000)
