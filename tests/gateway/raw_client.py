"""A client that speaks bytes: for peers that no library would let a test be."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from gateway.gateway_helpers import TIMEOUT_S, Service

UPGRADE = (
    b"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
)


class RawClient:
    """One TCP connection to a gateway.

    Owns: its two ends of the stream.
    Used from: the test's event loop.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.num_read = 0

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def upgrade(self, *headers: bytes) -> bytes:
        """Ask for a WebSocket, and return the head of the reply."""
        await self.send(UPGRADE + b"".join(header + b"\r\n" for header in headers) + b"\r\n")
        return await self.read_until(b"\r\n\r\n")

    async def read_until(self, mark: bytes) -> bytes:
        async with asyncio.timeout(TIMEOUT_S):
            return await self._reader.readuntil(mark)

    async def read_to_end(self) -> bytes:
        """Return everything up to the end of the connection; `num_read` follows meanwhile."""
        received = b""
        async with asyncio.timeout(TIMEOUT_S):
            with suppress(ConnectionResetError):
                while data := await self._reader.read(2**16):
                    received += data
                    self.num_read += len(data)
        return received


@asynccontextmanager
async def raw_client(service: Service) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def frame(opcode: int, payload: bytes) -> bytes:
    """Return a whole frame of a client, masked with zeros."""
    assert len(payload) < 126, len(payload)
    return bytes((0x80 | opcode, 0x80 | len(payload))) + bytes(4) + payload


def close_code(received: bytes) -> int:
    """Return the code of the close frame that a connection's bytes end with."""
    start = received.rindex(b"\x88")
    return int.from_bytes(received[start + 2 : start + 4], "big")
