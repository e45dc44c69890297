"""The browser page, served from the files that the build of `web/` leaves here.

Owns how they may be cached: the page itself is asked for anew each time, its assets never again,
since their names contain a hash of their content. Where the build has left a compressed copy next
to a file, a client that takes it gets that. Without a build there is a hint instead.
"""

from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

STATIC_DIR = Path(__file__).parent / "static"

_NOT_BUILT = (
    "chatserve is running, but its page has not been built: `make run` does that.\n"
    "The API is there all the same, at /v1/chat/completions and /v1/responses.\n"
)
_ASSETS = "/assets/"
_FOREVER = "public, max-age=31536000, immutable"

# By what a client calls them, the smaller one first.
_COPIES = {"br": ".br", "gzip": ".gz"}

# What the tables of types that Python and systems have do not know.
_TYPES = {".webmanifest": "application/manifest+json"}


class Page:
    """The files of the page, as an ASGI application.

    Owns: nothing that changes.
    Used from: the event loop, for every path that no endpoint has.
    """

    def __init__(self, static_dir: Path = STATIC_DIR) -> None:
        self._index = static_dir / "index.html"
        self._files = StaticFiles(directory=static_dir, html=True, check_dir=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404)
        elif self._index.is_file():
            await self._serve(scope, receive, send)
        elif scope["path"] == "/":
            await PlainTextResponse(_NOT_BUILT, 404)(scope, receive, send)
        else:
            raise HTTPException(404)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = "/index.html" if scope["path"] == "/" else scope["path"]
        if path.endswith(tuple(_COPIES.values())):
            raise HTTPException(404)  # a copy has no name of its own
        headers = {
            "cache-control": _FOREVER if path.startswith(_ASSETS) else "no-cache",
            "vary": "accept-encoding",
        }
        media_type = _TYPES.get(Path(path).suffix)
        if media_type is not None:
            headers["content-type"] = media_type
        encoding = self._encoding(path, Headers(scope=scope).get("accept-encoding", ""))
        if encoding is not None:
            headers["content-encoding"] = encoding
            scope = {**scope, "path": path + _COPIES[encoding]}
        await self._files(scope, receive, _with_headers(headers, send))

    def _encoding(self, path: str, accepted: str) -> str | None:
        """Return how the file is to be sent; None as it is, also where there is none."""
        codings = _codings(accepted)
        for encoding, suffix in _COPIES.items():
            if encoding in codings and self._has_file(path.lstrip("/") + suffix):
                return encoding
        return None

    def _has_file(self, name: str) -> bool:
        try:
            return self._files.lookup_path(name)[1] is not None
        except (OSError, ValueError):  # too long for a name, or not one at all
            return False


def _codings(accepted: str) -> set[str]:
    """Return the codings that an `Accept-Encoding` names, without those that it refuses."""
    codings = set()
    for each in accepted.lower().split(","):
        coding, _, quality = each.partition(";")
        if quality.strip().removeprefix("q=").strip("0.") or not quality.strip():
            codings.add(coding.strip())
    return codings


def _with_headers(headers: dict[str, str], send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return send_with_headers
