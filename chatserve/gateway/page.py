"""The browser page, served from the files that the build of `web/` leaves here.

Owns how they may be cached: the page itself is asked for anew each time, its assets never again,
since their names contain a hash of their content. Without a build there is a hint instead.
"""

from pathlib import Path

from starlette.datastructures import MutableHeaders
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
            await self._files(scope, receive, _with_cache_control(scope["path"], send))
        elif scope["path"] == "/":
            await PlainTextResponse(_NOT_BUILT, 404)(scope, receive, send)
        else:
            raise HTTPException(404)


def _with_cache_control(path: str, send: Send) -> Send:
    policy = _FOREVER if path.startswith(_ASSETS) else "no-cache"

    async def send_with_policy(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["cache-control"] = policy
        await send(message)

    return send_with_policy
