"""The socket that the service listens on.

Owns the one way to bind an address, and the one line that says why it could not be done. The
gateway listens on the socket; `serve` binds and lets go, to know before anything is started.
"""

import socket

from chatserve.config import bracketed
from chatserve.errors import ConfigError


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound and not listening yet.

    Raises:
        ConfigError: There is no such address here, or it is in use.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(host, port, error) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot listen on {bracketed(host)}:{port} ({error.strerror}); "
        "choose another --port or --host"
    )
