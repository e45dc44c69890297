"""The load client: many WebSockets in one process, as cheap as Python makes them.

Owns a WebSocket of its own: it reads the server's frames out of the bytes and looks for two things
in a payload, the time in a delta and the last event. A general client would cost more than the
gateway that is to be measured. `Load` says what is wanted; the figures are printed as JSON.

    python -m benchmarks.gateway.client PORT '{"streams": 250, "rate": 20, "seconds": 5}'
"""

import argparse
import asyncio
import json
import math
import os
import resource
import time
from array import array
from dataclasses import asdict, dataclass

from benchmarks.gateway.source import MODEL

_DELTA = b'"delta":"'
# A thousand streams that begin at once leave a backlog for about two seconds.
_WARM_UP_S = 3.0
_CONNECTS_AT_ONCE = 64

_HANDSHAKE = (
    b"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Version: 13\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Load:
    """So many streams of so many deltas a second each; rate 0 leaves the sockets idle."""

    streams: int
    rate: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What came after the warm-up, between two times of the monotonic clock.

    `latencies_ms` are from the append to the arrival, sorted; `cpu_share` is the client's own.
    """

    started: float
    ended: float
    latencies_ms: list[float]
    cpu_share: float

    @property
    def events_per_s(self) -> float:
        return len(self.latencies_ms) / (self.ended - self.started)

    def latency_ms(self, share: float) -> float:
        """Return the smallest latency that this share of all does not exceed."""
        count = len(self.latencies_ms)
        return self.latencies_ms[math.ceil(share * count) - 1] if count else math.inf


class Receiver(asyncio.Protocol):
    """One socket.

    Owns: the bytes of the frame that is not whole yet. Used from: the event loop.
    """

    def __init__(self, latencies_us: "array[int]") -> None:
        self.opened = asyncio.get_running_loop().create_future()
        self._latencies_us = latencies_us
        self._buffer = b""
        self._has_upgraded = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(_HANDSHAKE)

    def send(self, event: dict[str, object]) -> None:
        """Send one text frame, masked with zeros, which is allowed and costs nothing."""
        assert self._transport is not None
        payload = json.dumps(event).encode()
        head = bytes((0x81, 0x80 | 126)) + len(payload).to_bytes(2, "big")
        self._transport.write(head + bytes(4) + payload)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("refused before it was open"))

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data if self._buffer else data
        if not self._has_upgraded:
            head, separator, data = data.partition(b"\r\n\r\n")
            if not separator:
                self._buffer = head
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            self._has_upgraded = True
            self.opened.set_result(None)
        self._buffer = self._read_frames(data, time.monotonic_ns())

    def _read_frames(self, data: bytes, now: int) -> bytes:
        """Take whole frames off the front, and return the rest."""
        start = 0
        while len(data) - start >= 4:
            size, begin = data[start + 1], start + 2
            if size == 126:
                size, begin = int.from_bytes(data[start + 2 : start + 4], "big"), start + 4
            if len(data) - begin < size:
                break
            found = data.find(_DELTA, begin, begin + size)
            if found >= 0:
                text_at = found + len(_DELTA)
                sent = int(data[text_at : data.index(b" ", text_at)])
                self._latencies_us.append((now - sent) // 1000)
            elif data[start] == 0x89 and self._transport is not None:  # a ping: answer as it was
                pong = bytes((0x8A, 0x80 | size)) + bytes(4) + data[begin : begin + size]
                self._transport.write(pong)
            start = begin + size
        return data[start:]


async def run(port: int, load: Load) -> Figures:
    """Open the sockets, let them stream, and return what came after the warm-up."""
    latencies_us = array("q")
    receivers = await connect(port, load.streams, latencies_us)
    if load.rate:
        deltas = round((load.seconds + 2 * _WARM_UP_S) * load.rate)
        create: dict[str, object] = {
            "type": "response.create",
            "model": MODEL,
            "input": "x",
            "max_output_tokens": deltas,
            "seed": round(1e6 / load.rate),
        }
        for receiver in receivers:
            receiver.send(create)
        await _until_flowing(latencies_us, load.streams)
    await asyncio.sleep(_WARM_UP_S)
    del latencies_us[:]
    started, cpu_before = time.monotonic(), time.process_time()
    await asyncio.sleep(load.seconds)
    ended, cpu_s = time.monotonic(), time.process_time() - cpu_before
    received = [us / 1000 for us in sorted(latencies_us)]
    return Figures(started, ended, received, cpu_s / (ended - started))


async def connect(port: int, num_sockets: int, latencies_us: "array[int]") -> list[Receiver]:
    """Open sockets, a few at a time."""
    loop = asyncio.get_running_loop()
    turns = asyncio.Semaphore(_CONNECTS_AT_ONCE)

    async def connect_one() -> Receiver:
        async with turns:
            _, receiver = await loop.create_connection(
                lambda: Receiver(latencies_us), "127.0.0.1", port
            )
            await receiver.opened
            return receiver

    return await asyncio.gather(*(connect_one() for _ in range(num_sockets)))


async def _until_flowing(latencies_us: "array[int]", num_streams: int) -> None:
    """Return when deltas come on about all streams, or after a while."""
    deadline = time.monotonic() + 20
    while len(latencies_us) < num_streams and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def raise_open_files() -> None:
    """Let this process, and those it starts, have as many sockets as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("load", type=json.loads)
    args = parser.parse_args()
    raise_open_files()
    figures = asyncio.run(run(args.port, Load(**args.load)))
    print(json.dumps(asdict(figures)), flush=True)
    os._exit(0)  # thousands of sockets need no farewell one by one


if __name__ == "__main__":
    main()
