"""How many bytes of bodies may be on their way into one gateway at once.

Owns the sum over all requests whose bodies have not arrived whole. Each body has a limit of its
own, and thousands of them are enough to fill the memory: a client may send all but the last byte,
and wait. And owns that large bodies are looked at one after the other: each may take a while, and
many that arrive at once must not add up to a pause of the event loop.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chatserve.error_codes import ErrorCode
from chatserve.errors import Unavailable

MAX_BYTES = 256 * 2**20

_LARGE = 2**16


class BodyBudget:
    """The bytes that have arrived of bodies that have not ended.

    Owns: their number, and the line of large ones that have.
    Used from: the event loop.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._one_at_a_time = asyncio.Lock()

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], None]]:
        """Return what to call with the size of each piece of one body.

        Calling it raises Unavailable where there is no room for the piece.
        """
        taken = 0

        def take(num_bytes: int) -> None:
            nonlocal taken
            if self._num_bytes + num_bytes > self._max_bytes:
                raise Unavailable(
                    "too many bodies are on their way: try again", code=ErrorCode.TOO_MANY_BODIES
                )
            self._num_bytes += num_bytes
            taken += num_bytes

        try:
            yield take
        finally:
            self._num_bytes -= taken

    async def turn(self, num_bytes: int) -> None:
        """Return when a body may be looked at; of large ones, one returns in a turn of the loop."""
        if num_bytes >= _LARGE:
            async with self._one_at_a_time:
                await asyncio.sleep(0)
