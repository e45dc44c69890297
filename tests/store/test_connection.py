"""Opening a store: which servers will do, and what is said about those that will not."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatserve.errors import StoreError
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer


@asynccontextmanager
async def server_of_version(version: str, socket: Path) -> AsyncIterator[str]:
    """A server that answers INFO with this version and everything else with OK."""
    info = f"# Server\r\nredis_version:{version}\r\nmaxmemory_policy:noeviction\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while num_words := (await reader.readline()).decode().strip().removeprefix("*"):
            lines = [await reader.readline() for _ in range(2 * int(num_words))]
            is_info = lines[1].strip() == b"INFO"
            reply = f"${len(info)}\r\n{info}\r\n" if is_info else "+OK\r\n"
            writer.write(reply.encode())
        writer.close()

    async with await asyncio.start_unix_server(serve, socket):
        yield f"unix://{socket}?db=0"


async def test_ping_returns_when_the_server_answers(store: Store) -> None:
    await store.probe()


async def test_ping_fails_with_a_store_error_when_the_server_is_gone(
    own_server: EmbeddedServer, own_store: Store
) -> None:
    await own_server.stop()

    with pytest.raises(StoreError) as failure:
        await own_store.probe()

    assert failure.value.__cause__ is not None


async def test_address_where_nobody_listens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        await open_store(f"unix://{tmp_path}/none.sock?db=0")


@pytest.mark.parametrize("url", ["http://user:secret@host/0", "redis://:secret@host:port/0"])
async def test_url_that_makes_no_sense_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError) as failure:
        await open_store(url)

    assert "secret" not in str(failure.value)


@pytest.mark.parametrize(("version", "is_accepted"), [("6.2.16", False), ("7.0.0", True)])
async def test_server_before_7_0_is_refused(
    tmp_path: Path, version: str, *, is_accepted: bool
) -> None:
    async with server_of_version(version, tmp_path / "s.sock") as url:
        if is_accepted:
            await (await open_store(url)).aclose()
        else:
            with pytest.raises(StoreError, match=r"6\.2\.16"):
                await open_store(url)


async def test_server_that_may_evict_gets_a_warning(
    own_server: EmbeddedServer, own_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await own_store.commands.call("CONFIG", "SET", "maxmemory", "100mb")
    await own_store.commands.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")

    with caplog.at_level(logging.WARNING):
        await (await open_store(own_server.url)).aclose()

    assert "allkeys-lru" in caplog.text


async def test_server_that_keeps_everything_gets_no_warning(
    server_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await (await open_store(server_url)).aclose()

    assert caplog.text == ""


async def test_password_appears_nowhere() -> None:
    store = Store("redis://user:secret@127.0.0.1:1/0")

    with pytest.raises(StoreError) as failure:
        await store.probe()

    shown = [repr(store), repr(store.commands), repr(store.queue), str(failure.value)]
    assert not any("secret" in text for text in shown)
    assert shown[0] == "Store(redis://127.0.0.1:1/0)"
    await store.aclose()
