"""The numbers that clients and proxies are promised, as they are when nobody changes them."""

import gc
import socket
import sys
from typing import Any

import pytest
from gateway.gateway_helpers import Service

from chatserve.config import GatewayConfig
from chatserve.gateway import directory, server, server_protocols, sse
from chatserve.gateway.connection_limits import ConnectionLimits
from chatserve.gateway.server import create_server
from chatserve.listener import bind


def test_limits_of_a_connection() -> None:
    assert ConnectionLimits() == ConnectionLimits(
        max_in_flight=16,
        outbox_high_bytes=256 * 1024,
        outbox_low_bytes=64 * 1024,
        outbox_max_bytes=1024 * 1024,
        stall_s=30.0,
        close_timeout_s=5.0,
        auth_timeout_s=5.0,
    )


def test_times_after_which_a_peer_is_given_up() -> None:
    assert server_protocols.HEADER_TIMEOUT_S == 15
    assert server_protocols.STALL_S == 30


def test_event_streams_are_silent_for_less_than_a_proxy_puts_up_with() -> None:
    assert sse.KEEPALIVE_S == 15


def test_a_key_is_remembered_for_three_seconds() -> None:
    assert directory.REMEMBER_S == 3


async def test_sockets_are_pinged_by_the_server(service: Service) -> None:
    config = create_server(service.services).config

    assert (config.ws_ping_interval, config.ws_ping_timeout) == (20, 20)


async def test_first_frame_tells_what_a_client_must_keep_to(service: Service) -> None:
    async with service.socket() as socket:
        opened = socket.opened

    assert opened["heartbeat_interval_ms"] == 20_000
    assert opened["resume_ttl_ms"] == 600_000
    assert opened["limits"] == {
        "max_message_bytes": 1024 * 1024,
        "max_in_flight": 16,
        "max_lanes": 16,
        "lifetime_ms": 3_600_000,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the option is Linux's")
async def test_kernel_drops_peers_that_acknowledge_nothing(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, int] = {}

    class Listening:
        """A server that only looks at what it is to listen on."""

        async def serve(self, sockets: list[socket.socket]) -> None:
            [listener] = sockets
            options["keepalive"] = listener.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_USER_TIMEOUT"):
                number: Any = getattr(socket, name)
                options[name] = listener.getsockopt(socket.IPPROTO_TCP, number)

    monkeypatch.setattr(server, "create_server", lambda _: Listening())
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)

    with bind("127.0.0.1", 0) as free:
        port: int = free.getsockname()[1]

    await server.run_gateway(GatewayConfig(port=port, redis_url=store_url))

    assert options == {
        "keepalive": 1,
        "TCP_KEEPIDLE": 20,
        "TCP_KEEPINTVL": 20,
        "TCP_USER_TIMEOUT": 60_000,
    }
