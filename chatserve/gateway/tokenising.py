"""Where texts become tokens, and when.

Owns the threads for it, apart from those that everything else is done in, and whose turn it is: no
tenant has all of them. How long a text may be is decided by the encoder (`text/prompt_bound.py`).
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from chatserve.gateway.fair_turns import FairTurns

MAX_INLINE_CHARS = 4096
"""About a millisecond of work. What is more is done in a thread, off the event loop."""

_NUM_THREADS = max(3, (os.cpu_count() or 1) // 2)

T = TypeVar("T")


class Tokenising:
    """The threads that tokenise, and the lines for them.

    Owns: both.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_NUM_THREADS, "tokenising")
        self._turns = FairTurns(_NUM_THREADS, num_of_party=_NUM_THREADS - 1)

    async def run(self, tenant: str, size: int, work: Callable[[], T]) -> T:
        """Return what work on so many characters or tokens comes to, at once if these are few.

        A caller that is cancelled leaves its thread at work, which keeps its place until it ends.
        """
        if size <= MAX_INLINE_CHARS:
            return work()
        await self._turns.enter(tenant)
        loop = asyncio.get_running_loop()
        working = self._threads.submit(work)
        working.add_done_callback(lambda _: loop.call_soon_threadsafe(self._turns.leave, tenant))
        return await asyncio.wrap_future(working)

    async def aclose(self) -> None:
        """Return once no thread works any more."""
        await asyncio.to_thread(self._threads.shutdown)
