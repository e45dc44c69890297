"""What the fair queue is told about the worth of tokens, and what it tells about waiting.

Owns the records only. How the order comes about stands in `lua/fair_queue.lua`, what it means in
`queue.py`.
"""

from dataclasses import dataclass

from chatserve.store.limits import NO_ALLOWANCES, Allowances


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """What a token costs its tenant: an input token of any kind, and an output token."""

    input: int = 1
    output: int = 2


DEFAULT_WEIGHTS = TokenWeights()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request waits: behind how many of its own tenant's, and for about how long.

    `eta_ms` is None when nothing has left the queue lately. `allowances` say what was left when it
    was queued.
    """

    position: int
    eta_ms: int | None
    allowances: Allowances = NO_ALLOWANCES


@dataclass(frozen=True, slots=True)
class Full:
    """The queue had no room. `retry_ms` is the time in which half of the `depth` waiting leave.

    Whoever comes back then finds room, and no worker was idle for it.
    """

    depth: int
    retry_ms: int | None
