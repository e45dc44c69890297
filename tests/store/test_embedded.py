"""The bundled server: private, durable, and never left behind."""

import asyncio
import os
import signal
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from store.store_helpers import OWNER

from chatserve.errors import StoreError
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.sessions import NewSession


def socket_of(server: EmbeddedServer) -> Path:
    return Path(server.url.removeprefix("unix://").removesuffix("?db=0"))


async def test_socket_is_for_this_user_only_and_there_is_no_tcp_port(
    own_server: EmbeddedServer, own_store: Store
) -> None:
    socket = socket_of(own_server)

    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert await own_store.commands.call("CONFIG", "GET", "port") == ["port", "0"]


async def test_server_appends_to_disk_and_evicts_nothing(own_store: Store) -> None:
    names = ("appendonly", "appendfsync", "maxmemory-policy")

    settings = [(await own_store.commands.call("CONFIG", "GET", name))[1] for name in names]

    assert settings == ["yes", "everysec", "noeviction"]


async def test_restart_keeps_the_data(own_server: EmbeddedServer, own_store: Store) -> None:
    await own_store.sessions.create(OWNER, "s", NewSession(title="kept"))

    await own_server.stop()
    await own_server.start()

    session = await own_store.sessions.get("s")
    assert session is not None
    assert session.title == "kept"


async def test_scripts_run_on_a_server_that_has_forgotten_them(own_store: Store) -> None:
    await own_store.sessions.create(OWNER, "a")
    await own_store.commands.call("SCRIPT", "FLUSH")

    await own_store.sessions.create(OWNER, "b")

    assert await own_store.sessions.get("b") is not None


async def test_stop_is_idempotent_and_leaves_no_socket(own_server: EmbeddedServer) -> None:
    await own_server.stop()
    await own_server.stop()

    assert await own_server.wait() == 0
    assert not socket_of(own_server).exists()


async def test_server_that_is_killed_is_noticed(own_server: EmbeddedServer) -> None:
    waiting = asyncio.create_task(own_server.wait())
    assert own_server.pid is not None

    os.kill(own_server.pid, signal.SIGKILL)

    async with asyncio.timeout(10):
        assert await waiting == -signal.SIGKILL


async def test_server_starts_again_after_it_was_killed(own_server: EmbeddedServer) -> None:
    assert own_server.pid is not None
    os.kill(own_server.pid, signal.SIGKILL)
    await own_server.wait()

    await own_server.start()

    await (await open_store(own_server.url)).aclose()


async def test_server_left_behind_is_stopped_and_its_data_taken_over(
    own_server: EmbeddedServer, own_store: Store, server_binary: Path | None, tmp_path: Path
) -> None:
    await own_store.sessions.create(OWNER, "s", NewSession(title="kept"))
    successor = EmbeddedServer(tmp_path / "store", binary=server_binary)

    await successor.start()

    async with asyncio.timeout(10):
        assert await own_server.wait() == 0
    assert await own_store.sessions.get("s") is not None
    await successor.stop()


async def test_terminal_interrupt_does_not_reach_the_server(own_server: EmbeddedServer) -> None:
    assert own_server.pid is not None

    assert os.getpgid(own_server.pid) == own_server.pid != os.getpgrp()


async def test_long_data_folder_gets_a_short_socket(
    server_binary: Path | None, tmp_path: Path
) -> None:
    data_dir = tmp_path / ("long" * 30) / "store"
    server = EmbeddedServer(data_dir, binary=server_binary)

    await server.start()

    assert (data_dir / "appendonlydir").is_dir()
    assert len(os.fsencode(socket_of(server))) < 100
    assert stat.S_IMODE(socket_of(server).parent.stat().st_mode) == 0o700
    await server.stop()
    assert not socket_of(server).parent.exists()


async def test_data_folder_with_spaces_works(server_binary: Path | None, tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / 'a "b" c', binary=server_binary)

    await server.start()

    await (await open_store(server.url)).aclose()
    await server.stop()


async def test_server_that_cannot_run_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no memory left for this server >&2\nexit 3\n")
    broken.chmod(0o700)

    with pytest.raises(StoreError, match=r"code 3.*no memory left for this server"):
        await EmbeddedServer(tmp_path / "store", binary=broken).start()


async def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")

    with pytest.raises(StoreError):
        await EmbeddedServer(tmp_path / "store").start()


async def test_server_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be started"):
        await EmbeddedServer(tmp_path / "store", binary=tmp_path / "none").start()


async def test_server_is_started_through_its_lifeline(
    server_binary: Path | None, tmp_path: Path
) -> None:
    class Note:
        """A lifeline that keeps the pid of what is started through it."""

        def __init__(self) -> None:
            self._reader, self._writer = os.pipe()

        def enlisted(self, command: Sequence[str]) -> list[str]:
            return ["/bin/sh", "-c", 'echo $$ >&0 && exec "$@" </dev/null', "sh", *command]

        def fileno(self) -> int:
            return self._writer

        def pid(self) -> int:
            os.close(self._writer)
            with os.fdopen(self._reader) as reader:
                return int(reader.read())

    lifeline = Note()
    server = EmbeddedServer(tmp_path / "store", binary=server_binary, lifeline=lifeline)

    await server.start()

    assert lifeline.pid() == server.pid
    await server.stop()
