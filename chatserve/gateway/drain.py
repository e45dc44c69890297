"""The end of a gateway: no new work, and a bounded time for what is being served.

Owns whether this gateway drains, until when, and how many requests and sockets are still open.
Knows neither signals nor what an answer is: the server begins it, sockets are told by a callback,
and whoever asks for new work is refused at the gate.

    serving ──begin──> draining ──the last one leaves, the deadline, or skip──> over

Nothing is lost by it. An answer that can be resumed goes on in its worker, and its reader finds it
again through another gateway.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from chatserve.error_codes import ErrorCode
from chatserve.errors import Unavailable
from chatserve.gateway.replies import error_response
from chatserve.gateway.security import refuse

logger = logging.getLogger(__name__)

_MOMENT_S = 0.2


class Drain:
    """Whether this gateway drains, and who is still with it.

    Owns: the deadline, and the number of those who are served.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self._deadline: float | None = None
        self._num_served = 0
        self._listeners: set[Callable[[], None]] = set()
        self._is_over = asyncio.Event()

    @property
    def is_draining(self) -> bool:
        return self._deadline is not None

    @property
    def remaining_s(self) -> float:
        """The seconds until the deadline, which has been set."""
        assert self._deadline is not None, "this gateway does not drain"
        return max(0.0, self._deadline - asyncio.get_running_loop().time())

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Count somebody whom draining waits for."""
        self._num_served += 1
        try:
            yield
        finally:
            self._num_served -= 1
            self._note_end()

    @contextmanager
    def telling(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call `listener` when draining begins, or at once if it has begun."""
        self._listeners.add(listener)
        try:
            if self.is_draining:
                listener()
            yield
        finally:
            self._listeners.discard(listener)

    async def run(self, seconds: float) -> None:
        """Begin, and return when nobody is left, or after so many seconds and a moment.

        In that moment those who were told leave by themselves.
        """
        self._deadline = asyncio.get_running_loop().time() + seconds
        for listener in list(self._listeners):
            listener()
        self._note_end()
        try:
            async with asyncio.timeout(seconds + _MOMENT_S):
                await self._is_over.wait()
        except TimeoutError:
            logger.info("requests and sockets that did not end in time: %d", self._num_served)

    def skip(self) -> None:
        """Wait for nobody any more."""
        self._is_over.set()

    def _note_end(self) -> None:
        if self.is_draining and not self._num_served:
            self._is_over.set()


class DrainGate:
    """Counts what is being served, and refuses new work while the gateway drains.

    What only reads, ends or deletes is served to the last: it is short, and a client may need it to
    leave in order.

    Owns: nothing that changes.
    Used from: the event loop, as a layer of the application.
    """

    def __init__(self, app: ASGIApp, *, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._drain.is_draining and _is_new_work(scope):
            await refuse(error_response(draining(), scope["path"]), scope, receive, send)
            return
        with self._drain.serving():
            await self._app(scope, receive, send)


def draining() -> Unavailable:
    """Return what is said to whoever asks a gateway that stops for anything new."""
    return Unavailable(
        "this gateway is about to stop: ask again; a stored response goes on and can be resumed",
        code=ErrorCode.DRAINING,
    )


def _is_new_work(scope: Scope) -> bool:
    if scope["type"] == "websocket":
        return True
    path: str = scope["path"]
    is_ending = path.endswith(("/cancel", "/logout"))
    return scope["method"] == "POST" and path.startswith("/v1/") and not is_ending
