"""The end of access while somebody is being served.

Owns what a caller is told whose key was revoked or replaced, whose login is over, or whose tenant
has gone, on sockets and over HTTP. That it has happened is found out by `directory.py`; what then
becomes of an answer that loses its reader is told in `readers.py`.

Short requests are not watched: they end by themselves.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.requests import HTTPConnection, Request
from starlette.websockets import WebSocket

from chatserve.error_codes import ErrorCode
from chatserve.errors import Unauthenticated
from chatserve.gateway.ending import Ending
from chatserve.gateway.identity import grant_of
from chatserve.gateway.services import Services
from chatserve.protocol.codes import CloseCode

_IS_OVER = "this access has ended: show a valid key"


def watching_access(
    websocket: WebSocket, end: Callable[[Ending], None]
) -> AbstractAsyncContextManager[None]:
    """Have `end` called, while the context is open, when an authenticated socket loses access."""
    return _watching(websocket, lambda: end(Ending(CloseCode.POLICY, _IS_OVER)))


@asynccontextmanager
async def while_access_lasts(request: Request) -> AsyncIterator[None]:
    """Run what is inside, or cancel it and raise Unauthenticated when the caller loses access."""
    try:
        async with asyncio.timeout(None) as lasting:

            def end() -> None:
                lasting.reschedule(asyncio.get_running_loop().time())

            async with _watching(request, end):
                yield
    except TimeoutError:
        if not lasting.expired():
            raise
        raise Unauthenticated(_IS_OVER, code=ErrorCode.INVALID_API_KEY) from None


def _watching(
    connection: HTTPConnection, on_over: Callable[[], None]
) -> AbstractAsyncContextManager[None]:
    services: Services = connection.app.state.services
    return services.directory.watching(grant_of(connection), on_over)
