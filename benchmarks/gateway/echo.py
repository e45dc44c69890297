"""A source that is no gateway: the client's own limit, measured against as little as possible.

Owns a server that answers every handshake and then writes deltas at a pace; no store, no queue, no
protocol beyond what the client looks at. Takes the pace from the create, as the real source does.

    python -m benchmarks.gateway.echo PORT
"""

import argparse
import asyncio
import json
import random
import time

from benchmarks.gateway.client import raise_open_files

_TICK_S = 0.005
_UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"


class Paced(asyncio.Protocol):
    """One socket, and when its next delta is due.

    Owns: its transport. Used from: the event loop.
    """

    def __init__(self, sockets: set["Paced"]) -> None:
        self._sockets = sockets
        self._transport: asyncio.Transport | None = None
        self._interval_s = 0.0
        self._next_at = float("inf")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._sockets.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._sockets.discard(self)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if data.startswith(b"GET"):
            self._transport.write(_UPGRADED)
            return
        create = json.loads(data[data.index(b"{") :])
        self._interval_s = create["seed"] / 1e6
        self._next_at = time.monotonic() + random.random() * self._interval_s

    def send_due(self, now: float) -> None:
        """Write the delta whose time has come."""
        if now >= self._next_at and self._transport is not None:
            self._next_at += self._interval_s
            payload = b'{"type":"response.output_text.delta","delta":"%d "}' % time.monotonic_ns()
            self._transport.write(bytes((0x81, len(payload))) + payload)


async def _main(port: int) -> None:
    sockets: set[Paced] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: Paced(sockets), "127.0.0.1", port, backlog=2048
    )
    async with server:
        while True:
            started = time.monotonic()
            for paced in sockets:
                paced.send_due(started)
            await asyncio.sleep(max(0.0, started + _TICK_S - time.monotonic()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    raise_open_files()
    asyncio.run(_main(parser.parse_args().port))
