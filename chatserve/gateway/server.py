"""The gateway's process: a bound socket, services, uvicorn, and an orderly end.

Owns the settings of the server below the application, each of which is there for a reason, and the
order of the shutdown: no new connections, sockets are told 1012 so that their clients come back,
requests get a moment, then the services close.
"""

import asyncio
import logging
import signal
import socket
import threading

import uvicorn

from chatserve.config import GatewayConfig
from chatserve.gateway.app import create_app
from chatserve.gateway.services import Services, open_services
from chatserve.listener import bind

logger = logging.getLogger(__name__)

GRACEFUL_SHUTDOWN_S = 5

_BACKLOG = 2048


async def run_gateway(config: GatewayConfig) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ConfigError: The address cannot be listened on.
        StoreError: The store cannot be used.
    """
    with bind(config.host, config.port) as listener:
        _outlive_signals()
        async with open_services(config) as services:
            await create_server(services).serve(sockets=[listener])


def create_server(services: Services) -> uvicorn.Server:
    """Return the server for services that are up."""
    return _Server(
        services,
        uvicorn.Config(
            create_app(services),
            # The slower of uvicorn's two, and the one that bounds the size of headers.
            http="h11",
            # The implementation that stops reading the application when the peer stops reading.
            ws="websockets-sansio",
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
    """The server, which says that it stops before the first socket is closed.

    Readers that lose their socket to our stop come back through another gateway, so their answers
    must not be counted as abandoned.
    """

    def __init__(self, services: Services, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._generations = services.generations

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logger.info("stopping")
        self._generations.stop_abandoning()
        await super().shutdown(sockets)


def _outlive_signals() -> None:
    """Keep this process alive through the signals that stop the server.

    uvicorn stops at the first one, and raises it again when it is done. By default that would kill
    the process before its services have closed.
    """
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, logger.debug, "signal %d", number)
