"""Which worker a request is sent to: the best trade of what it need not compute and its load.

Owns the policy and the picture that it decides on. Pure: asks no store and no clock, so that a
simulation drives it as a gateway does. A route is a hint; whoever is free takes over what its
worker does not (`store/queue.py`), and what it finds in its cache is decided there by tokens.

    cost(w) = tokens of the prompt that w has to compute
            + the same again if w has no pages free for them
            + tokens of the prompt * load(w)
    load(w) = requests waiting in w + requests running in w / seats of w, in eighths, rounded down

The least cost wins. What is evicted has to be computed again, so that a prompt which nobody holds
goes where there is room for it: two tenants that would push each other out of one cache get one
each. A worker that holds the whole prompt is worth one full batch, or one request that waits before
it, against an idle one that holds nothing; a hit of half the prompt is worth half of that.
Measuring load in prompts needs no constant for the speed of a machine. The idea of one sum of both
is that of routers such as Dynamo's; others, such as SGLang's, switch between cache and load at a
threshold, and then send a short hit to a long queue just below it.

Among equal costs the worker with the highest rendezvous hash of the tenant and the first pages wins
(Thaler and Ravishankar, Using Name-Based Mappings to Increase Hit Rates, 1998). So all gateways
send what nobody holds to the same worker, and a worker that comes or goes moves only its share.

What a gateway has sent is not in a heartbeat or digest for a while. It is counted as load until one
must show it or the answer has ended, and as held by its worker.

How a thousand workers are compared in some tens of microseconds: sets of workers are bits of one
number. `PrefixIndex` gives the workers that hold each prefix; each is a subset of the one before.
For each of these sets, the least loaded of it is found by meeting it with the set of the workers at
each level of load, from the lowest. No worker is looked at by itself but those that tie.

What a tenant's routes depend on beside the load are its own tokens and public ones: both digests
and what was sent are looked up under its salt (`chatserve.prefix_digest`).
"""

import hashlib
import math
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

from chatserve.gateway.prefix_index import PrefixIndex
from chatserve.gateway.room_index import RoomIndex
from chatserve.gateway.routed_prompt import RoutedPrompt
from chatserve.gateway.sent_prefixes import SETTLE_S, SentPrefixes
from chatserve.prefix_digest import PrefixDigest, Shape, tenant_salt

_LEVELS_PER_REQUEST = 8
_MAX_LEVEL = 32 * _LEVELS_PER_REQUEST
_ODD_64 = 0x9E3779B97F4A7C15  # 2**64 by the golden ratio, as in Fibonacci hashing
_MASK_64 = 2**64 - 1
_PUBLIC_SALT = tenant_salt("")


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """What a worker has to do, how many requests it runs at once, and how many pages are free."""

    running: int = 0
    waiting: int = 0
    seats: int = 1
    free_pages: int = 0

    def level(self, num_sent: int) -> int:
        """Return the load in eighths of a request, with so many on their way that take seats."""
        running = self.running + num_sent
        waiting = self.waiting + max(0, running - self.seats)
        share = min(running, self.seats) * _LEVELS_PER_REQUEST // self.seats
        return min(waiting * _LEVELS_PER_REQUEST + share, _MAX_LEVEL)


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A prompt that was sent to a worker."""

    worker_id: str
    sent_s: float


class RoutingTable:
    """The workers of one model, and where to send a request.

    Owns: their loads and digests, and what was sent lately. Used from: the event loop.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._worker_ids: dict[int, str] = {}
        self._seeds: dict[int, int] = {}
        self._loads: dict[int, WorkerLoad] = {}
        self._levels: dict[int, int] = {}
        self._at_level = [0] * (_MAX_LEVEL + 1)
        self._room = RoomIndex()
        self._everybody = 0
        self._index = PrefixIndex()
        self._sent = SentPrefixes()
        self._num_sent = Counter[str]()
        self._routes: deque[Route] = deque()
        self._unsettled: set[Route] = set()

    @property
    def worker_ids(self) -> set[str]:
        return set(self._slots)

    def put_load(self, worker_id: str, load: WorkerLoad) -> None:
        """Take in what a worker says of its load; one that is new is chosen from its digest on."""
        slot = self._slots.get(worker_id)
        if slot is None:
            slot = self._open_slot(worker_id)
        self._loads[slot] = load
        self._room.put(slot, load.free_pages)
        self._place(slot)

    def put_digest(self, worker_id: str, digest: PrefixDigest) -> None:
        """Take in what a worker says of its cache. Unknown workers are ignored."""
        if worker_id in self._slots:
            self._index.put(self._slots[worker_id], digest)

    def remove(self, worker_id: str) -> None:
        """Choose a worker no more. Idempotent."""
        slot = self._slots.pop(worker_id, None)
        if slot is None:
            return
        self._index.remove(slot)
        self._room.remove(slot)
        self._sent.remove(slot)
        self._at_level[self._levels.pop(slot)] ^= 1 << slot
        self._everybody ^= 1 << slot
        del self._worker_ids[slot], self._seeds[slot], self._loads[slot]

    def choose(self, prompt: RoutedPrompt, now_s: float) -> Route | None:
        """Return where to send a prompt, and count it as sent there.

        None when it makes no difference: there is one worker at most, or no whole page to find.
        """
        self._settle(now_s)
        page_size = min((shape.page_size for shape in self._index.shapes), default=0)
        if len(self._slots) < 2 or not page_size or prompt.hashes(page_size).num_pages == 0:
            return None
        tied, missing = self._cheapest(prompt)
        slot = self._rendezvous(tied, prompt.home(page_size))
        route = Route(self._worker_ids[slot], now_s)
        self._routes.append(route)
        self._unsettled.add(route)
        self._count_sent(route, 1)
        self._room.take(slot, -(-missing // page_size))
        self._sent.note(slot, prompt, page_size)
        return route

    def finish(self, route: Route) -> None:
        """Count as load no more what has ended. Idempotent."""
        if route in self._unsettled:
            self._unsettled.remove(route)
            self._count_sent(route, -1)

    def _cheapest(self, prompt: RoutedPrompt) -> tuple[int, int]:
        """Return the mask of the workers of the least cost, and how many tokens they lack.

        A set of holders contains those of longer prefixes. For them the cost comes out too high
        here, and right where their own set is looked at.
        """
        least, tied, lacking = math.inf, 0, 0
        for shape, members in self._index.shapes.items():
            for num_held, holders in self._holders(prompt, shape, members):
                missing = prompt.num_tokens - num_held
                roomy = holders & self._room.at_least(-(-missing // shape.page_size))
                for mask, num_computed in ((roomy, missing), (holders, 2 * missing)):
                    level, at_level = self._least_loaded(mask)
                    cost = num_computed * _LEVELS_PER_REQUEST + prompt.num_tokens * level
                    if at_level and cost <= least:
                        tied = at_level if cost < least else tied | at_level
                        least, lacking = cost, missing
        return tied, lacking

    def _holders(
        self, prompt: RoutedPrompt, shape: Shape, members: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the sets of those that hold a beginning of the prompt, each with its length.

        The first one is all, who hold nothing at least. A prompt is public first and its tenant's
        then, and never public again.
        """
        hashes, holders_of = prompt.hashes(shape.page_size), self._index.lookup(shape)
        may_be_public, before = True, 0
        for page in range(shape.stride - 1, hashes.num_pages, shape.stride):
            own = hashes[page] ^ prompt.salt
            found = holders_of(own) | self._sent.holders(own)
            if may_be_public:
                public = members & holders_of(hashes[page] ^ _PUBLIC_SALT)
                found, may_be_public = found | public, public > 0
            found &= members
            if found != members:
                yield before, members
            if not found:
                return
            members, before = found, (page + 1) * shape.page_size
        yield before, members

    def _least_loaded(self, mask: int) -> tuple[int, int]:
        """Return the lowest level of load in a set of workers, and those that are there."""
        if mask:
            for level, workers in enumerate(self._at_level):
                if workers & mask:
                    return level, workers & mask
        return 0, 0

    def _rendezvous(self, mask: int, key: int) -> int:
        return max(_bits(mask), key=lambda slot: (self._seeds[slot] ^ key) * _ODD_64 & _MASK_64)

    # ── What was sent ────────────────────────────────────────────────────────────────────────

    def _settle(self, now_s: float) -> None:
        """Forget what was sent long enough ago."""
        self._sent.age(now_s)
        while self._routes and self._routes[0].sent_s <= now_s - SETTLE_S:
            self.finish(self._routes.popleft())

    def _count_sent(self, route: Route, by: int) -> None:
        self._num_sent[route.worker_id] += by
        if not self._num_sent[route.worker_id]:
            del self._num_sent[route.worker_id]
        if route.worker_id in self._slots:
            self._place(self._slots[route.worker_id])

    # ── Slots and levels ─────────────────────────────────────────────────────────────────────

    def _open_slot(self, worker_id: str) -> int:
        slot = (~self._everybody & (self._everybody + 1)).bit_length() - 1  # the lowest free one
        self._slots[worker_id], self._worker_ids[slot] = slot, worker_id
        seed = hashlib.blake2b(worker_id.encode(), digest_size=8).digest()
        self._seeds[slot] = int.from_bytes(seed, "little")
        self._everybody |= 1 << slot
        return slot

    def _place(self, slot: int) -> None:
        """Put a worker where its load belongs."""
        bit, old = 1 << slot, self._levels.get(slot)
        if old is not None:
            self._at_level[old] ^= bit
        level = self._loads[slot].level(self._num_sent[self._worker_ids[slot]])
        self._levels[slot] = level
        self._at_level[level] |= bit


def _bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
