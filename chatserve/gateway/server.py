"""The gateway's process: a bound socket, services, uvicorn, and an orderly end.

Owns the settings of the server below the application, each of which is there for a reason, and the
order of the end:

1. From the first signal on new work is refused; sockets are told, and those with nothing in flight
   are closed with 1012, so that their clients come back elsewhere (`drain.py`).
2. Running answers get `--drain` seconds to end; a second signal takes that time away.
3. Event streams that still run end with an error that says so, sockets are closed.
4. What is left gets a moment, then the services close.
"""

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
from types import FrameType

import uvicorn

from chatserve import __version__
from chatserve.config import GatewayConfig, bracketed
from chatserve.gateway.app import create_app
from chatserve.gateway.drain import draining
from chatserve.gateway.server_protocols import HttpProtocol, SocketProtocol
from chatserve.gateway.services import Services, open_services
from chatserve.listener import bind

logger = logging.getLogger(__name__)

GRACEFUL_SHUTDOWN_S = 5

# A peer that vanished without a word is noticed within the sum of both.
PING_INTERVAL_S = 20.0
PING_TIMEOUT_S = 20.0

_KEEPALIVE_S = 20
_MAX_SILENCE_S = 60

_BACKLOG = 2048


async def run_gateway(config: GatewayConfig) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ConfigError: The address cannot be listened on.
        StoreError: The store cannot be used.
    """
    with bind(config.host, config.port) as listener:
        _bound_silence(listener)
        _outlive_signals()
        async with open_services(config) as services:
            _collect_rarely()
            _log_start(services)
            await create_server(services).serve(sockets=[listener])


def _log_start(services: Services) -> None:
    """Say where this gateway answers, and what is missing for that to be of use."""
    config = services.config
    served = ", ".join(model.card.name for model in services.models.live)
    logger.info(
        "%s http://%s:%d, version %s%s",
        "ready on" if served else "listening on",
        bracketed(config.host),
        config.port,
        __version__,
        f", serving {served}" if served else "; nothing is answered before a model is loaded",
    )
    if not config.is_loopback and not services.directory.has_tenants:
        logger.warning(
            "on this address everything needs a key, and there is none yet; to make the first: "
            "`chatserve tenant add NAME`, then "
            "`chatserve key add --tenant NAME --user USER --role operator`"
        )


def _collect_rarely() -> None:
    """Keep the collector of cycles from stopping everything again and again.

    What there is now stays for good. With a thousand sockets a full collection took 50 ms, at the
    default pace several times a minute; reference counts free nearly everything without it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def create_server(services: Services) -> uvicorn.Server:
    """Return the server for services that are up."""
    return _Server(
        services,
        uvicorn.Config(
            create_app(services),
            # The slower of uvicorn's two, and the one that bounds the size of headers.
            http=HttpProtocol,
            # The implementation that stops reading the application when the peer stops reading.
            ws=SocketProtocol,
            ws_ping_interval=PING_INTERVAL_S,
            ws_ping_timeout=PING_TIMEOUT_S,
            ws_max_size=services.config.max_message_bytes,
            # 64 kB and more for each socket, and no gain on frames of a few bytes.
            ws_per_message_deflate=False,
            lifespan="off",
            access_log=False,
            log_config=None,
            # What it has to say is the doing of peers, tracebacks included, or is logged here.
            log_level="critical",
            server_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
        ),
    )


class _Server(uvicorn.Server):
    """The server, which drains before it closes anything.

    Readers that lose their socket to our stop come back through another gateway, so their answers
    must not be counted as abandoned.
    """

    def __init__(self, services: Services, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._services = services
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal: the first begins the end, the second makes it quick."""
        if self.should_exit:
            self._loop.call_soon_threadsafe(self._services.drain.skip)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logger.info("stopping")
        self._services.generations.stop_abandoning()
        await self._services.drain.run(self._services.config.drain_s)
        self._services.generations.end_reading(draining())
        await super().shutdown(sockets)


def _bound_silence(listener: socket.socket) -> None:
    """Let the kernel drop peers that acknowledge nothing; accepted connections inherit it.

    Pings do this for WebSockets. A client that vanishes while its request waits, or in the middle
    of an event stream, is noticed by nothing else. Linux only; elsewhere the system's own bounds
    hold.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_S)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_S)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _MAX_SILENCE_S)


def _outlive_signals() -> None:
    """Keep this process alive through the signals that stop the server.

    uvicorn stops at the first one, and raises it again when it is done. By default that would kill
    the process before its services have closed.
    """
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, logger.debug, "signal %d", number)
