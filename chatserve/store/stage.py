"""How far a request in flight is.

Owns the form in which a worker says how far a prompt is, and in which the store tells the stage.
"""

from dataclasses import dataclass

from chatserve.engine.api import Prefill
from chatserve.store.fair_queue import Place


@dataclass(frozen=True, slots=True)
class Stage:
    """How far a request in flight is: waiting at a place, or with an owner.

    One that waits and `was_claimed` has come back from a worker. `prefill` is what its owner said
    of a long prompt, with its last sign of life.
    """

    was_claimed: bool = False
    owner: str | None = None
    place: Place | None = None
    prefill: Prefill | None = None


def pack_prefill(prefill: Prefill) -> str:
    return f"{prefill.cached_tokens},{prefill.computed_tokens},{prefill.total_tokens}"


def parse_stage(
    num_claims: int,
    owner: str | None,
    prefill: str | None,
    position: int | None,
    eta_ms: int | None,
) -> Stage:
    return Stage(
        was_claimed=num_claims > 0,
        owner=owner,
        place=None if position is None else Place(position, eta_ms),
        prefill=Prefill(*map(int, prefill.split(","))) if prefill else None,
    )
