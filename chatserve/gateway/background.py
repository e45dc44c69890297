"""Work that goes on beside the requests, from a part's start to its end.

Owns the task. What the work is, and what it does about errors, is the part's business.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Background:
    """One piece of work that never ends by itself.

    Owns: its task, between `start` and `aclose`.
    Used from: the event loop, by the part whose work it is.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._work())

    async def aclose(self) -> None:
        """Cancel the work, and return when it has unwound; without a start there is nothing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
