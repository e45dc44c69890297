"""Who may talk to this gateway at all: Host and Origin checks, and headers for the browser.

Owns two refusals that come before any routing, equal for HTTP and WebSocket. Knows no credentials.

- Host: a page on a foreign site can point its own name at 127.0.0.1 and then counts as same-origin
  (DNS rebinding). Such a request names the foreign host, so only known names pass. An address
  passes as well: it cannot be pointed elsewhere.
- Origin: browsers send it with every WebSocket and every cross-site write, and apply no policy of
  their own to WebSockets. It must be this very host or a configured one.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatserve.config import GatewayConfig
from chatserve.error_codes import ErrorCode
from chatserve.errors import Forbidden
from chatserve.gateway.replies import error_response
from chatserve.protocol.errors import describe

# RFC 9110, section 7.2, but no user and nothing that is encoded: a name or an address, and a port.
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?")

_DEFAULT_PORTS = {"http": 80, "https": 443}

_CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No string becomes HTML or code. The page's one policy makes the address of its worker.
        "require-trusted-types-for 'script'",
        "trusted-types chatserve",
    )
)

_SECURITY_HEADERS = {
    "content-security-policy": _CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    # A browser may be another user's next; the page's own files say that they may be kept.
    "cache-control": "no-store",
}


class Gatekeeper:
    """Refuses foreign hosts and origins with 403, before a socket is upgraded.

    Owns: nothing that changes.
    Used from: the event loop, as the outermost layer of the application.
    """

    def __init__(self, app: ASGIApp, *, config: GatewayConfig) -> None:
        self._app = app
        self._host_names = frozenset(name.lower() for name in config.host_names)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in config.allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, _with_security_headers(send))
        else:
            await refuse(error_response(refusal, scope["path"]), scope, receive, send)

    def _refusal(self, headers: Headers) -> Forbidden | None:
        host = headers.get("host", "")
        if not self._is_own_host(host):
            return Forbidden(
                f"Host {describe(host)} is not served here: see --allowed-hosts",
                code=ErrorCode.HOST_NOT_ALLOWED,
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_allowed_origin(origin, host):
            return Forbidden(
                f"Origin {describe(origin)} may not connect: see --allowed-origins",
                code=ErrorCode.ORIGIN_NOT_ALLOWED,
            )
        return None

    def _is_own_host(self, host: str) -> bool:
        name = _split_host(host)[0]
        return name in self._host_names or _is_address(name)

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        if origin.lower() in self._origins:
            return True
        scheme, _, origin_host = origin.partition("://")
        default_port = _DEFAULT_PORTS.get(scheme)
        if default_port is None:
            return False
        # The scheme is not compared: behind a proxy that ends TLS ours is http, the page's https.
        name, port = _split_host(host)
        origin_name, origin_port = _split_host(origin_host)
        return name == origin_name and (port or default_port) == (origin_port or default_port)


def _split_host(host: str) -> tuple[str, int | None]:
    """Return name and port of a Host header, or of an origin's end; of anything else no name.

    Parsers disagree about which part of a longer authority is the host, so there must be no more.
    """
    if not _HOST.fullmatch(host):
        return "", None
    try:
        parts = urlsplit(f"//{host}")
        name = parts.hostname or ""
        return (f"[{name}]" if ":" in name else name), parts.port
    except ValueError:
        return "", None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


async def refuse(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, or a handshake before its upgrade, by this response."""
    if scope["type"] == "websocket":
        await receive()  # the handshake; answered by a plain HTTP response instead of an upgrade
    await response(scope, receive, send)


def _with_security_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
