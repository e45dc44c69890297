"""The requests that wait for a seat, and the order in which they are tried.

Owns the line. Knows neither seats nor pages; how much of a prompt is cached, it is told.

A request that has been running before comes first: somebody reads its answer already. Of the
others, the one with the least to compute goes first, and every step of waiting counts as
`AGE_CREDIT` tokens less. So a stream of requests with warm prefixes can pass a cold one of n tokens
for `n / AGE_CREDIT` steps and no longer, and among equals the first to come is the first to go.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from chatserve.engine.request import Request

AGE_CREDIT = 32
"""Tokens that one step of waiting is worth."""

LOOKAHEAD = 32
"""How many requests are compared, from the front: the order costs a match for each, every step."""


class WaitingLine:
    """Requests in order of arrival, and their order of admission.

    Owns: the line, and the count of steps that says how long each has waited. Used from: the
    scheduler.
    """

    def __init__(self) -> None:
        self._requests: dict[Request, None] = {}
        self._num_steps = 0

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    def add(self, request: Request) -> None:
        """Let a request wait from now on; one that ran before waits in front."""
        if _has_run(request):
            self._requests = {request: None, **self._requests}
        else:
            request.queued_step = self._num_steps
            self._requests[request] = None

    def remove(self, request: Request) -> None:
        del self._requests[request]

    def count_step(self) -> None:
        """Say that a step has been decided, and that whoever is still here has waited for it."""
        self._num_steps += 1

    def in_order(self, num_uncached_tokens: Callable[[Request], int]) -> list[Request]:
        """Return the requests to try, the first first; `num_uncached_tokens` is asked for each."""

        def rank(request: Request) -> tuple[bool, int]:
            age = self._num_steps - request.queued_step
            return not _has_run(request), num_uncached_tokens(request) - AGE_CREDIT * age

        return sorted(islice(self._requests, LOOKAHEAD), key=rank)

    def check_invariants(self) -> None:
        """Recount the order of the line. For tests and debugging."""
        fresh = [request.queued_step for request in self._requests if not _has_run(request)]
        assert fresh == sorted(fresh), "requests wait in another order than they came"


def _has_run(request: Request) -> bool:
    return request.num_cached_tokens is not None
