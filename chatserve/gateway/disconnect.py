"""Noticing that an HTTP client has left, whatever the handler is waiting for.

A disconnect is only seen by receiving, and a handler that waits for the queue or the first token
sends nothing for seconds. So the work runs next to a task that does nothing but receive.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


async def until_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """Run `work` to its end, or cancel it when the client leaves; None means that it left.

    The request body must have been read. Returns and raises only after `work` has unwound, so
    that whatever it held is released by then.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        # Cancelled here, both end within a few steps of the loop: all that their cleanup may await
        # is tasks of their own, cancelled with them.
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
