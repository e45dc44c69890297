"""Clients that leave or lie before a request is whole: no reply to give, nothing to log."""

import asyncio
import logging
from contextlib import suppress

import pytest
from gateway.gateway_helpers import Service


async def send_raw(service: Service, data: bytes, *, then_read: bool) -> bytes:
    """Send bytes to the gateway and close, after its reply or at once."""
    host, port = service.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    await writer.drain()
    reply = b""
    if then_read:
        async with asyncio.timeout(20):
            with suppress(ConnectionResetError):  # it need not read what it refuses
                reply = await reader.read()
    writer.close()
    return reply


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_fault(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """Each such client wrote a traceback into the log."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    with caplog.at_level(logging.INFO):
        await send_raw(service, head + b'{"model"', then_read=False)
        assert (await service.http.get("/health")).status_code == 200

    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_headers_are_bounded(service: Service) -> None:
    """A header of any size was kept in memory."""
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 200_000 + b"\r\n\r\n"

    reply = await send_raw(service, head, then_read=True)

    assert b" 200 " not in reply
