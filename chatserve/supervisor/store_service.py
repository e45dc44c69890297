"""The bundled store as a service of the supervisor."""

import logging
import signal
from pathlib import Path

from chatserve.store.embedded import EmbeddedServer
from chatserve.supervisor.lifeline import Lifeline, signal_group

logger = logging.getLogger(__name__)


class StoreService:
    """The embedded server, on the lifeline.

    Owns: the server, and that its process group is forgotten once it has ended.
    Used from: the supervisor's event loop.
    """

    name = "store"

    def __init__(self, folder: Path, lifeline: Lifeline) -> None:
        self._server = EmbeddedServer(folder, lifeline=lifeline)
        self._lifeline = lifeline

    @property
    def url(self) -> str:
        return self._server.url

    async def start(self) -> None:
        await self._server.start()
        logger.info("started the %s, process %d", self.name, self._server.pid)

    async def wait(self) -> int:
        code = await self._server.wait()
        assert self._server.pid is not None, "a server that has ended had a process"
        self._lifeline.forget(self._server.pid)
        return code

    async def stop(self) -> None:
        await self._server.stop()

    def kill(self) -> None:
        if self._server.pid is not None:
            signal_group(self._server.pid, signal.SIGKILL)
