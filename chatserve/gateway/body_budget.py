"""How many bytes of bodies may be on their way into one gateway at once.

Owns the sum over all requests whose bodies have not arrived whole. Each body has a limit of its
own, and thousands of them are enough to fill the memory: a client may send all but the last byte,
and wait.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chatserve.error_codes import ErrorCode
from chatserve.errors import Unavailable

MAX_BYTES = 256 * 2**20


class BodyBudget:
    """The bytes that have arrived of bodies that have not ended.

    Owns: their number.
    Used from: the event loop.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0

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
