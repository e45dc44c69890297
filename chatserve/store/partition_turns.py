"""Whose turn it is where the queue of a model lies in several partitions.

Owns the order in which a worker claims from them. Pure; asks no store.

Counters of tenants in different partitions are comparable, but no script sees two partitions. So a
worker looks at all of them first, and takes from the one with the lowest counter until it would
pass the next one's. Between looking and claiming, another worker may have claimed: a turn may then
be off by one round of claims, and the counters say so at the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chatserve.store.keys import Partition


@dataclass(frozen=True, slots=True)
class PartitionTurn:
    """One claim from one partition.

    Tenants that wait there below `floor` are lifted to it first: it is where the service of all
    partitions stands, and what a tenant did not use while it was away is no credit. The claim ends
    when the lowest counter there is above `until`; None is no bound, where nobody waits elsewhere.
    """

    partition: Partition
    floor: float = 0.0
    until: float | None = None


def order_turns(
    partitions: Sequence[Partition], lowest: Sequence[float | None], floors: Sequence[float]
) -> list[PartitionTurn]:
    """Return the claims to make, in order.

    Args:
        partitions: All of them.
        lowest: The lowest waiting counter of each; None where nobody waits.
        floors: The counter of the tenant whose turn was last in each.
    """
    floor = max(floors)
    waiting = sorted(
        (max(counter, floor), index) for index, counter in enumerate(lowest) if counter is not None
    )
    if len(waiting) == 1:
        return [PartitionTurn(partitions[waiting[0][1]], floor)]
    # The last one goes on in the next round, when the others' counters have grown.
    bounds = [counter for counter, _ in (*waiting[1:], *waiting[-1:])]
    return [
        PartitionTurn(partitions[index], floor, until)
        for (_, index), until in zip(waiting, bounds, strict=True)
    ]
