"""What fair turns are worth to a quiet tenant: its wait beside a flood, and what the flood pays.

The queue is the real one: its scripts on a bundled server decide every turn. Arrivals and service
are simulated: a request takes a seat of one of two workers, its prompt is computed at a fixed rate,
its tokens come at a fixed pace and are charged as they come. First come, first served is the same
queue with all requests under one tenant. Nothing here ages, since all have one priority: within a
tenant it is the order of the enqueues that counts, so the server's own clock does not matter.

A second part has no simulated time at all: one tenant has 1,000 requests waiting, another sends
one, and two workers claim at once until it is theirs.

    python -m benchmarks.fairness [--seconds 120] [--flood 10]
"""

import argparse
import asyncio
import heapq
import itertools
import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from benchmarks.record import write_record
from chatserve.engine.api import (
    EventKind,
    FinishReason,
    GenerationRequest,
    LogEvent,
    Outcome,
    RequestId,
    SamplingParams,
    Usage,
)
from chatserve.store.claim import Claim
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.fair_queue import Place
from chatserve.store.response_log import Append, FinalAnswer
from chatserve.store.responses import ResponseRecord

MODEL = "simulated"
WORKERS = ("w1", "w2")
SEATS_PER_WORKER = 8
PROMPT_TOKENS_PER_S = 1000
TOKEN_S = 0.05
DELTA_TOKENS = 8
LEASE_MS = 3_600_000
NUM_WAITING = 1000

Event = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Load:
    """Who sends how many requests a second, and how long they are in tokens."""

    sender: str
    rate: float
    prompt_len: int
    output_len: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What one sender got. Waits are in seconds, from the enqueue to the claim."""

    wait_p50: float
    wait_p99: float
    answers_per_s: float
    output_tokens_per_s: float


@dataclass(frozen=True, slots=True)
class Order:
    """What one order of the queue did: claims until the one request started, figures by sender."""

    num_claims: int
    figures: dict[str, Figures]


class Simulation:
    """Two workers of simulated speed on the real queue.

    Owns: simulated time and what happens in it. Used from: the event loop.
    """

    def __init__(self, store: Store, loads: Sequence[Load], *, is_fair: bool):
        self.waits: defaultdict[str, list[float]] = defaultdict(list)
        self.ends: defaultdict[str, list[float]] = defaultdict(list)
        self._store = store
        self._is_fair = is_fair
        self._loads = {load.sender: load for load in loads}
        self._now = 0.0
        self._events: list[tuple[float, int, Event]] = []
        self._order = itertools.count()
        self._num_arrived = Counter[str]()
        self._arrived_at: dict[str, float] = {}
        self._free = dict.fromkeys(WORKERS, SEATS_PER_WORKER)

    async def run(self, seconds: float) -> dict[str, Figures]:
        """Let requests arrive for so long, serve them all, and return the figures by sender."""
        for load in self._loads.values():
            for i in range(round(load.rate * seconds)):
                self._at(i / load.rate, partial(self._arrive, load))
        while self._events:
            self._now, _, event = heapq.heappop(self._events)
            await event()
        return {sender: self._figures(load, seconds) for sender, load in self._loads.items()}

    def _at(self, time: float, event: Event) -> None:
        heapq.heappush(self._events, (time, next(self._order), event))

    async def _arrive(self, load: Load) -> None:
        name = f"{load.sender}-{self._num_arrived[load.sender]}"
        self._num_arrived[load.sender] += 1
        self._arrived_at[name] = self._now
        await enqueue(self._store, name, load, load.sender if self._is_fair else "everybody")
        await self._fill_seats()

    async def _fill_seats(self) -> None:
        for worker_id, free in self._free.items():
            if free:
                claims = await self._store.queue.claim(worker_id, MODEL, free, LEASE_MS)
                for claim in claims:
                    self._begin(worker_id, claim)

    def _begin(self, worker_id: str, claim: Claim) -> None:
        """Take a seat, and plan the deltas and the end of the answer."""
        self._free[worker_id] -= 1
        name = claim.request.request_id
        load = self._loads[name.partition("-")[0]]
        self.waits[load.sender].append(self._now - self._arrived_at[name])
        first_s = self._now + load.prompt_len / PROMPT_TOKENS_PER_S
        num_deltas = -(-load.output_len // DELTA_TOKENS)
        for i in range(num_deltas):
            append = _delta(claim, i)
            at = first_s + (i + 1) * DELTA_TOKENS * TOKEN_S
            self._at(at, partial(self._write, append))
        last = _ending(claim, num_deltas)
        end_s = first_s + load.output_len * TOKEN_S
        self._at(end_s, partial(self._end, worker_id, load.sender, last))

    async def _write(self, append: Append) -> None:
        assert await self._store.log.append([append]) == [True]

    async def _end(self, worker_id: str, sender: str, append: Append) -> None:
        await self._write(append)
        self.ends[sender].append(self._now)
        self._free[worker_id] += 1
        await self._fill_seats()

    def _figures(self, load: Load, seconds: float) -> Figures:
        num_ended = sum(end <= seconds for end in self.ends[load.sender])
        waits = sorted(self.waits[load.sender])
        return Figures(
            wait_p50=_quantile(waits, 0.5),
            wait_p99=_quantile(waits, 0.99),
            answers_per_s=num_ended / seconds,
            output_tokens_per_s=num_ended * load.output_len / seconds,
        )


async def enqueue(store: Store, name: str, load: Load, tenant: str) -> None:
    """Queue a request of this load for a tenant."""
    request = GenerationRequest(
        request_id=RequestId(name),
        model=MODEL,
        prompt_token_ids=tuple(range(load.prompt_len)),
        sampling=SamplingParams(max_tokens=load.output_len, seed=0),
        tenant=tenant,
    )
    record = ResponseRecord(
        response_id=request.request_id,
        model=MODEL,
        created_at=0,
        ttl_s=60,
        assistant_message_id=f"msg-{name}",
    )
    place = await store.queue.enqueue(request, record, max_queue=10**6)
    assert isinstance(place, Place), place


async def claims_until_served(store: Store, *, is_fair: bool) -> int:
    """Return how many claims two workers made until the one request among many was taken."""
    await store.commands.call("FLUSHALL")
    load = Load("flood", 1, 8, 8)
    tenants = ("flood", "steady") if is_fair else ("everybody", "everybody")
    for i in range(NUM_WAITING):
        await enqueue(store, f"flood-{i}", load, tenants[0])
    for worker_id in WORKERS:  # the flood is well under way when the other comes
        await store.queue.claim(worker_id, MODEL, SEATS_PER_WORKER, LEASE_MS)
    await enqueue(store, "steady-0", load, tenants[1])
    claimed: list[str] = []

    async def work(worker_id: str) -> None:
        while "steady-0" not in claimed:
            claims = await store.queue.claim(worker_id, MODEL, 1, LEASE_MS)
            claimed.extend(claim.request.request_id for claim in claims)

    await asyncio.gather(*map(work, WORKERS))
    return claimed.index("steady-0") + 1


async def measure(seconds: float, flood_rate: float) -> dict[str, Order]:
    """Return what each order of the queue did, by its name."""
    loads = (Load("flood", flood_rate, 400, 64), Load("steady", 1, 100, 32))
    orders: dict[str, Order] = {}
    with tempfile.TemporaryDirectory(prefix="chatserve-bench-") as folder:
        server = EmbeddedServer(Path(folder))
        await server.start()
        store = await open_store(server.url)
        for name, is_fair in (("fair", True), ("first come, first served", False)):
            num_claims = await claims_until_served(store, is_fair=is_fair)
            await store.commands.call("FLUSHALL")
            figures = await Simulation(store, loads, is_fair=is_fair).run(seconds)
            orders[name] = Order(num_claims, figures)
        await store.aclose()
        await server.stop()
    return orders


def print_tables(orders: dict[str, Order]) -> None:
    rows = {
        "steady tenant: wait, median, s": ("steady", "wait_p50"),
        "steady tenant: wait, 99th percentile, s": ("steady", "wait_p99"),
        "steady tenant: answers per second": ("steady", "answers_per_s"),
        "flooding tenant: wait, median, s": ("flood", "wait_p50"),
        "flooding tenant: answers per second": ("flood", "answers_per_s"),
        "flooding tenant: output tokens per second": ("flood", "output_tokens_per_s"),
    }
    print(f"| simulated | {' | '.join(orders)} |")
    print(f"|---|{'---:|' * len(orders)}")
    for title, (sender, field) in rows.items():
        values = [asdict(order.figures[sender])[field] for order in orders.values()]
        print(f"| {title} | {' | '.join(f'{value:,.2f}' for value in values)} |")
    print(f"\nOne request beside {NUM_WAITING:,} of another tenant, two workers claiming:")
    for name, order in orders.items():
        print(f"{name}: started as claim number {order.num_claims:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120, help="how long requests arrive")
    parser.add_argument("--flood", type=float, default=10, help="requests a second of the flood")
    args = parser.parse_args()
    orders = asyncio.run(measure(args.seconds, args.flood))
    print_tables(orders)
    results = {name: asdict(order) for name, order in orders.items()}
    path = write_record("fairness", {"arguments": vars(args), "orders": results})
    print(f"\nraw figures: {path}")


def _delta(claim: Claim, number: int) -> Append:
    event = LogEvent(EventKind.DELTA, "text", tuple(range(DELTA_TOKENS)))
    sequence = claim.next_sequence + number
    return Append(claim.request.request_id, claim.epoch, sequence, (event,))


def _ending(claim: Claim, num_deltas: int) -> Append:
    outcome = Outcome(FinishReason.LENGTH, Usage())
    event = LogEvent(outcome.terminal_kind, outcome=outcome)
    sequence = claim.next_sequence + num_deltas
    final = FinalAnswer("", (), outcome)
    return Append(claim.request.request_id, claim.epoch, sequence, (event,), final)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of all does not exceed."""
    return ordered[math.ceil(share * len(ordered)) - 1]


if __name__ == "__main__":
    main()
