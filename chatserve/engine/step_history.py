"""What the steps of the last minute did, in intervals of half a second, for people to look at.

Owns the intervals. A step costs a few additions for each request in it. Knows neither pages nor
text; the time comes with each step, in seconds since 1970.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from chatserve.cache_snapshot import StepCounts, StepInterval
from chatserve.engine.request import Request
from chatserve.engine.scheduler import ScheduledRequest, SchedulerOutput

INTERVAL_S = 0.5
LENGTH_S = 60.0


class StepHistory:
    """The last minute, by tenant, or by user where nobody else shares a user's pages.

    Owns: the intervals, and the counts in them. Used from: the engine thread.
    """

    def __init__(self, *, by_user: bool):
        self._by_user = by_user
        self._closed: deque[StepInterval] = deque(maxlen=int(LENGTH_S / INTERVAL_S))
        self._number = 0
        self._counts: dict[tuple[str, str | None], StepCounts] = {}

    def record(self, output: SchedulerOutput, waiting: Iterable[Request], now_s: float) -> None:
        """Count one step, after it has been computed."""
        self._begin(int(now_s / INTERVAL_S))
        for run in output.scheduled:
            counts = self._counts_of(run.request)
            if _is_decode(run):
                counts.decode_tokens += 1
            else:
                counts.prefill_tokens += len(run.token_ids)
        for request in output.admitted:
            self._counts_of(request).cached_tokens += request.num_cached_tokens or 0
        line: dict[int, int] = {}
        for request in waiting:
            counts = self._counts_of(request)
            line[id(counts)] = line.get(id(counts), 0) + 1
            counts.num_waiting = max(counts.num_waiting, line[id(counts)])

    def intervals(self, now_s: float) -> list[StepInterval]:
        """Return the intervals of the last minute in which there was a step, the oldest first."""
        # The one that lasts is copied: the reader is in another thread.
        lasting = [replace(counts) for counts in self._counts.values()]
        told = [*self._closed, StepInterval(self._number * INTERVAL_S, lasting)]
        return [each for each in told if each.counts and each.at >= now_s - LENGTH_S]

    def _begin(self, number: int) -> None:
        if number != self._number:
            closed = StepInterval(self._number * INTERVAL_S, list(self._counts.values()))
            self._closed.append(closed)
            self._number, self._counts = number, {}

    def _counts_of(self, request: Request) -> StepCounts:
        owner = (request.tenant, request.user if self._by_user else None)
        counts = self._counts.get(owner)
        if counts is None:
            counts = self._counts[owner] = StepCounts(*owner)
        return counts


def _is_decode(run: ScheduledRequest) -> bool:
    """Tell whether a run is the one new token of an answer, and not a piece of a prompt."""
    return len(run.token_ids) == 1 and run.start >= run.request.num_prompt_tokens
