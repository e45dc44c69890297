"""The fair queue of one model in plain Python: what `lua/fair_queue.lua` must do, said again.

Nothing here is fast: a tenant's turn is found by looking at all tenants, a place by sorting.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_PASSED_REQUESTS = 16
"""At how many requests of a tenant a claim looks; there are fewer tenants than it looks at."""


@dataclass
class FairQueueOracle:
    """Who waits in which order, and what every tenant was charged.

    `ranks` are the waiting requests with what they are sorted by, `tenants` whose each one is.
    """

    tenants: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, tuple[int, int]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    seats: Counter[str] = field(default_factory=Counter)
    floor: int = 0

    def line(self, tenant: str) -> list[str]:
        """Return the waiting requests of a tenant, the next one first."""
        own = [name for name in self.ranks if self.tenants[name] == tenant]
        return sorted(own, key=self.ranks.__getitem__)

    def enter(self, name: str, tenant: str, rank: tuple[int, int]) -> None:
        waiting = self._waiting()
        if tenant not in waiting:
            level = min((self.counters[other] for other in waiting), default=self.floor)
            self.counters[tenant] = max(self.counters.get(tenant, 0), level)
        self.tenants[name], self.ranks[name] = tenant, rank

    def next(self, is_open: Callable[[str], bool] = bool) -> str | None:
        """Return whose turn it is among those that are open, and note the lowest counter."""
        if not self.ranks:
            return None
        tenants = sorted(self._waiting(), key=lambda each: (self.counters[each], each.encode()))
        self.floor = self.counters[tenants[0]]
        lines = (self.line(tenant)[:MAX_PASSED_REQUESTS] for tenant in tenants)
        return next((name for line in lines for name in line if is_open(name)), None)

    def leave(self, name: str) -> None:
        del self.ranks[name]

    def begin_lease(self, name: str, cost: int) -> None:
        self.seats[self.tenants[name]] += 1
        self.charge(name, cost)

    def end_lease(self, name: str) -> None:
        self.seats[self.tenants[name]] -= 1
        self.seats += Counter()  # drops what is zero

    def charge(self, name: str, cost: int) -> None:
        self.counters[self.tenants[name]] += cost

    def forget(self) -> None:
        """Drop the counters that matter no more."""
        if not self.ranks and not self.seats:
            self.counters, self.floor = {}, 0
        active = self._waiting() | set(self.seats)
        self.counters = {
            tenant: counter
            for tenant, counter in self.counters.items()
            if tenant in active or counter > self.floor
        }

    def _waiting(self) -> set[str]:
        return {self.tenants[name] for name in self.ranks}
