"""A proxy before the store that loses commands, or the replies to them, with their connections.

Owns when a command counts as lost; which ones are is said by whoever makes the proxy.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path


class Cut(StrEnum):
    """When the connection of a command is closed."""

    BEFORE = "before"  # the server never sees the command
    AFTER = "after"  # the server runs it, and the reply is lost


Decide = Callable[[int], Cut | None]
"""How the n-th command, counted from 1, is lost; None where it is not."""


class CuttingProxy:
    """Passes commands to a server and cuts the connections of some of them.

    Owns: its connections while it runs.
    Used from: a test.
    """

    def __init__(self, socket: Path, upstream: Path, decide: Decide) -> None:
        self._socket, self._upstream, self._decide = socket, upstream, decide
        self._connections: set[asyncio.Task[None]] = set()
        self._num_commands = 0
        self.num_cuts = 0

    @property
    def url(self) -> str:
        return f"unix://{self._socket}?db=0"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        listener = await asyncio.start_unix_server(self._accept, self._socket)
        yield self.url
        listener.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_unix_connection(self._upstream)
        loses_reply = asyncio.Event()
        pumps = [
            asyncio.create_task(self._pump_commands(client, to_server, loses_reply)),
            asyncio.create_task(_pump_replies(server, to_client, loses_reply)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            to_client.close()
            to_server.close()

    async def _pump_commands(
        self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter, loses: asyncio.Event
    ) -> None:
        while sent := await client.read(2**20):
            self._num_commands += 1
            cut = self._decide(self._num_commands)
            if cut is not None:
                self.num_cuts += 1
            if cut is Cut.BEFORE:
                return
            if cut is Cut.AFTER:
                loses.set()
            to_server.write(sent)


async def _pump_replies(
    server: asyncio.StreamReader, to_client: asyncio.StreamWriter, loses: asyncio.Event
) -> None:
    while (reply := await server.read(2**20)) and not loses.is_set():
        to_client.write(reply)
