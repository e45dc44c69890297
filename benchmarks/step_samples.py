"""What memory held during each step of a run, and what follows from it.

Owns the definitions of the figures. Knows neither engine nor model, so that one that is measured
and one that is simulated are summarised alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True)
class StepSample:
    """What memory held during one step.

    `allocated_slots` are those given to running requests, a shared page counted once; of them,
    `filled_slots` hold a token's KV. `num_tokens` counts the tokens of all running requests, shared
    ones once for each. `is_short` says that requests waited although the step had room for more
    tokens: what they waited for was memory.
    """

    allocated_slots: int
    filled_slots: int
    num_tokens: int
    num_running: int
    num_waiting: int
    is_short: bool


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """How well a pool was used while more was asked than it holds; means over steps.

    Counted from the first step in which a request waited for memory to the last in which one
    waited for anything: before and after, the pool is not what limits the batch.
    """

    unfilled_percent: float  # of the allocated slots: internal fragmentation
    utilisation_percent: float  # of the pool's slots, filled for a running request
    mean_running: float
    peak_running: int
    mean_tokens: float  # of a running request
    mean_own_tokens: float  # slots per running request, shared ones counted once
    num_steps: int
    num_preemptions: int  # in the whole run

    @classmethod
    def of(
        cls, samples: Sequence[StepSample], num_slots: int, num_preemptions: int = 0
    ) -> "LoadFigures":
        """Return the figures of a run in a pool of `num_slots`."""
        short = [index for index, sample in enumerate(samples) if sample.is_short]
        assert short, "no request ever waited for memory: the load is too small for the pool"
        last = max(index for index, sample in enumerate(samples) if sample.num_waiting)
        window = samples[short[0] : last + 1]
        return cls(
            unfilled_percent=100 * fmean(1 - s.filled_slots / s.allocated_slots for s in window),
            utilisation_percent=100 * fmean(s.filled_slots / num_slots for s in window),
            mean_running=fmean(s.num_running for s in window),
            peak_running=max(s.num_running for s in window),
            mean_tokens=fmean(s.num_tokens / s.num_running for s in window),
            mean_own_tokens=fmean(s.filled_slots / s.num_running for s in window),
            num_steps=len(window),
            num_preemptions=num_preemptions,
        )


def fills(num_tokens: int, page_size: int) -> list[int]:
    """Return how many slots of each page `num_tokens` consecutive tokens fill."""
    full, rest = divmod(num_tokens, page_size)
    return [page_size] * full + [rest] * bool(rest)
