"""What paging is compared with: an engine that reserves one contiguous run of slots per request.

Owns a simulation of it, in integers and in the engine's own steps: the same token budget, decodes
first, first come, first served. It favours the rival wherever there is a choice: it never preempts,
moves nothing, and its steps cost nothing. Computed, not measured.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.step_samples import StepSample
from benchmarks.stepped_engine import Work

PRE_ALLOCATED_TOKENS = 2048

Reserve = Callable[[Work], int]
"""How many slots a request is given at its start, and keeps until its end."""


def pre_allocation(_work: Work) -> int:
    """Reserve the longest sequence that the service allows."""
    return PRE_ALLOCATED_TOKENS


def exact_reservation(work: Work) -> int:
    """Reserve what the request will have needed at its end, as if that were always known."""
    return work.num_prompt_tokens + work.max_tokens


class ContiguousPool:
    """Slots given out in contiguous runs, the first gap that is wide enough.

    Owns: the runs that are taken. Used from: one simulation.
    """

    def __init__(self, num_slots: int):
        self.num_taken = 0
        self._num_slots = num_slots
        self._taken: list[tuple[int, int]] = []  # start and end of each run, in order

    def try_take(self, num_slots: int) -> tuple[int, int] | None:
        start = 0
        for taken_start, taken_end in [*self._taken, (self._num_slots, self._num_slots)]:
            if taken_start - start >= num_slots:
                run = (start, start + num_slots)
                insort(self._taken, run)
                self.num_taken += num_slots
                return run
            start = taken_end
        return None

    def give_back(self, run: tuple[int, int]) -> None:
        self._taken.remove(run)
        self.num_taken -= run[1] - run[0]


@dataclass(slots=True)
class _Sequence:
    """A running request: the last token that it samples is never computed."""

    num_prompt_tokens: int
    num_total: int
    run: tuple[int, int]
    num_computed: int = 0


def simulate(
    works: Iterable[Work], num_slots: int, reserve: Reserve, max_num_batched_tokens: int
) -> list[StepSample]:
    """Run requests that all come at once to their end; return a sample per step.

    Every one of them must fit the empty pool.
    """
    pool, waiting = ContiguousPool(num_slots), deque(works)
    running: list[_Sequence] = []
    samples: list[StepSample] = []
    while waiting or running:
        budget = _advance(running, max_num_batched_tokens)
        while waiting and budget > 0:
            run = pool.try_take(reserve(waiting[0]))
            if run is None:
                break
            work = waiting.popleft()
            total = work.num_prompt_tokens + work.max_tokens - 1
            running.append(_Sequence(work.num_prompt_tokens, total, run))
            budget = _advance(running[-1:], budget)
        assert running, f"a request does not fit an empty pool of {num_slots} slots"
        samples.append(_sample(pool, running, len(waiting), is_short=bool(waiting) and budget > 0))
        for done in [each for each in running if each.num_computed == each.num_total]:
            running.remove(done)
            pool.give_back(done.run)
    return samples


def _advance(running: list[_Sequence], budget: int) -> int:
    """Compute one token of everything that decodes, then prompts; return the budget left."""
    decoding = [each for each in running if each.num_computed >= each.num_prompt_tokens]
    for sequence in decoding[:budget]:
        sequence.num_computed += 1
    budget -= len(decoding[:budget])
    for sequence in running:
        missing = max(0, sequence.num_prompt_tokens - sequence.num_computed)
        sequence.num_computed += min(missing, budget)
        budget -= min(missing, budget)
    return budget


def _sample(
    pool: ContiguousPool, running: list[_Sequence], num_waiting: int, *, is_short: bool
) -> StepSample:
    filled = sum(each.num_computed for each in running)
    return StepSample(pool.num_taken, filled, filled, len(running), num_waiting, is_short)
