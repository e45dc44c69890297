"""The simulated parts of a fleet: tenants, requests, and workers with a prefix cache.

Owns what a worker can do and what it remembers. Knows no time of its own, no routing and no store.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from chatserve.gateway.routing import Route
from chatserve.prefix_digest import HASH_BYTES, continue_hashes

PAGE_SIZE = 64
PREAMBLE_TOKENS = 2 * PAGE_SIZE
TURN_TOKENS = 2 * PAGE_SIZE  # a question and its answer, once they are history
QUESTION_TOKENS = PAGE_SIZE
CACHE_TOKENS = 64_000

PREAMBLE = list(range(1, PREAMBLE_TOKENS + 1))
PREAMBLE_HASHES = continue_hashes(b"", PREAMBLE, PAGE_SIZE)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant's system prompt, and the hashes of its pages behind the preamble."""

    name: str
    tokens: list[int]
    hashes: bytes


@dataclass(slots=True, eq=False)
class Turn:
    """One request. Mutable: it starts, may be lost, and starts again under the next epoch."""

    tenant: int
    session: int
    number: int
    num_left: int
    arrived_s: float
    epoch: int = 0
    is_running: bool = False
    route: Route | None = None

    def history(self, num_turns: int) -> list[int]:
        """Return the tokens of the first turns of its session."""
        return [self.session + each for each in range(num_turns) for _ in range(TURN_TOKENS)]

    def prompt(self, tenant: Tenant) -> list[int]:
        question = [self.session] * QUESTION_TOKENS
        return [*PREAMBLE, *tenant.tokens, *self.history(self.number), *question]


@dataclass(slots=True, eq=False)
class SimulatedWorker:
    """A worker and its cache. Mutable.

    The cache has the length of what it holds by tenant (negative keys) and by session, and the
    hashes of its pages; the least recently used comes first.
    """

    name: str
    running: set[Turn] = field(default_factory=set)
    waiting: deque[Turn] = field(default_factory=deque)
    prefill_free_s: float = 0.0
    prefill_begins: deque[float] = field(default_factory=deque)
    cache: OrderedDict[int, tuple[int, int, bytes]] = field(default_factory=OrderedDict)
    num_cached: int = 0
    is_alive: bool = True

    @property
    def num_free_pages(self) -> int:
        return (CACHE_TOKENS - self.num_cached) // PAGE_SIZE

    def num_unstarted(self, now_s: float) -> int:
        while self.prefill_begins and self.prefill_begins[0] <= now_s:
            self.prefill_begins.popleft()
        return len(self.prefill_begins)

    def find(self, tenant: int, session: int) -> int:
        """Return how many tokens of a prompt are cached behind the preamble, as used now."""
        num_found = 0
        for key in (-1 - tenant, session):
            entry = self.cache.get(key)
            if entry is None:
                break
            num_found += entry[0]
        for key in (session, -1 - tenant):
            if key in self.cache:
                self.cache.move_to_end(key)
        return num_found

    def keep(self, key: int, num_tokens: int, tenant: int, hashes: bytes) -> None:
        old = self.cache.pop(key, None)
        self.num_cached += num_tokens - (old[0] if old else 0)
        self.cache[key] = (num_tokens, tenant, hashes)
        while self.num_cached > CACHE_TOKENS:
            self.num_cached -= self.cache.popitem(last=False)[1][0]


def make_tenant(number: int) -> Tenant:
    """Return a tenant with a prompt of four to sixteen pages."""
    num_pages = 4 + number * 7 % 13
    tokens = [number * 20 + page for page in range(num_pages) for _ in range(PAGE_SIZE)]
    hashes = continue_hashes(PREAMBLE_HASHES[-HASH_BYTES:], tokens, PAGE_SIZE)
    return Tenant(f"tenant-{number}", tokens, hashes)
