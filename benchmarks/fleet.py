"""What routing is worth to a fleet: a thousand workers and a million sessions in simulated time.

    python -m benchmarks.fleet [--quick] [--workers 1000] [--sessions 1000000]

The routing code is the real one: `gateway/routing.py` chooses by real digests of real hashes of
every prompt, and learns of loads and caches with the delays that heartbeats have. Simulated are the
workers: prompts are computed one after the other at a fixed rate, tokens come at a fixed pace, the
prefix cache forgets what was not used for longest. Also simulated is what the store does with a
route: a worker without a free seat has half a second, then whoever has one takes the request.

Tenants are asked for by Zipf's law. Each has a system prompt behind a preamble that all share, and
its sessions have a few turns with time to think in between. Workers die, with all they hold, and
are replaced half a minute later; after three fifths of the time a tenth more start, cold.

Compared are choosing at random, in turn, and by least load. These three know who has died at once,
and the third knows the loads of this very moment, which no gateway does.
"""

import argparse
import heapq
import itertools
import random
import time
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial

from benchmarks.fleet_worker import (
    PAGE_SIZE,
    PREAMBLE_HASHES,
    PREAMBLE_TOKENS,
    QUESTION_TOKENS,
    TURN_TOKENS,
    SimulatedWorker,
    Tenant,
    Turn,
    make_tenant,
)
from benchmarks.record import write_record
from chatserve.gateway.routed_prompt import RoutedPrompt
from chatserve.gateway.routing import RoutingTable, WorkerLoad
from chatserve.prefix_digest import HASH_BYTES, HeldPrefixes, PrefixDigest, continue_hashes

OUTPUT_TOKENS = 50
THINK_S = 8.0
MEAN_TURNS = 2.0

SEATS = 64
PREFILL_TOKENS_PER_S = 20_000
TOKEN_S = 0.02
REQUESTS_PER_WORKER_S = 14.0
_TOKENS_OF_ALL = PREAMBLE_TOKENS + QUESTION_TOKENS

STEAL_AFTER_S = 0.5
BEAT_S = 1.0
DIGEST_BEATS = 3
BEAT_TTL_S = 4.0
LEASE_S = 8.0
RESTART_S = 30.0
FAILURES_PER_1000_WORKERS_S = 0.1
SCALE_OUT_AT = 0.6
SCALE_OUT_SHARE = 0.1

# Commands for an answer, for each of its tokens, and for a worker's life in a second, as
# `benchmarks/store_cost.py` counts them on a real store.
STORE_OPS_PER_ANSWER = 9.0
STORE_OPS_PER_TOKEN = 1.25
STORE_OPS_PER_BEAT = 8.0


class Policy(StrEnum):
    """How a worker is chosen."""

    RANDOM = "random"
    ROUND_ROBIN = "round robin"
    LEAST_LOADED = "least loaded"
    OURS = "prefix and load"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated."""

    workers: int
    sessions: int
    tenants: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What one policy did. Times are in seconds; a queue is what is not the prompt's own time."""

    policy: str
    num_answers: int
    hit_rate: float
    max_to_mean_load: float
    ttft_p50_s: float
    ttft_p99_s: float
    queue_p99_s: float
    stolen: float
    store_ops_per_s: float
    decisions_per_s: float | None
    ran_s: float


class Simulation:
    """One policy on one fleet.

    Owns: simulated time and everything in it.
    """

    def __init__(self, size: Size, policy: Policy, seed: int = 0):
        self._size = size
        self._policy = policy
        self._rng = random.Random(seed)
        self._fates = random.Random(seed + 1)  # deaths are the same whatever is chosen
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, size.tenants + 1)))
        self._tenants: dict[int, Tenant] = {}
        self._table = RoutingTable()
        self._workers: dict[str, SimulatedWorker] = {}
        self._names: list[str] = []
        self._by_load: list[dict[str, None]] = [{} for _ in range(SEATS + 1)]
        self._open: deque[Turn] = deque()
        self._num_in_turn = 0
        self._num_sessions = 0
        self._num_workers = 0
        self.num_in_flight = 0
        self._tokens = [0, 0]  # of prompts, and of those from caches
        self._ttfts, self._queues, self._imbalances = array("f"), array("f"), array("f")
        self._num_stolen = self._num_turns = self._num_beats = 0
        self._choosing_s = 0.0

    def run(self) -> Figures:
        began_s = time.perf_counter()
        rate = self._size.workers * REQUESTS_PER_WORKER_S / MEAN_TURNS
        duration_s = self._size.sessions / rate
        for _ in range(self._size.workers):
            self._start_worker()
        self._at(0.0, partial(self._next_session, rate))
        self._at(BEAT_S, partial(self._beat, 0))
        num_failures = duration_s * self._size.workers * FAILURES_PER_1000_WORKERS_S / 1000
        for _ in range(max(1, round(num_failures))):
            self._at(self._fates.uniform(0.2, 0.9) * duration_s, self._fail)
        self._at(SCALE_OUT_AT * duration_s, self._scale_out)
        while self._events:
            self._now, _, event = heapq.heappop(self._events)
            event()
        return self._figures(time.perf_counter() - began_s)

    def _at(self, time_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time_s, next(self._order), event))

    # ── Sessions ─────────────────────────────────────────────────────────────────────────────

    def _next_session(self, rate: float) -> None:
        [tenant] = self._rng.choices(range(self._size.tenants), cum_weights=self._weights)
        num_turns = 1
        while self._rng.random() > 1 / MEAN_TURNS:
            num_turns += 1
        self._arrive(Turn(tenant, self._num_sessions, 0, num_turns - 1, self._now))
        self._num_sessions += 1
        if self._num_sessions < self._size.sessions:
            self._at(self._now + self._rng.expovariate(rate), partial(self._next_session, rate))

    def _arrive(self, turn: Turn) -> None:
        turn.arrived_s = self._now
        self.num_in_flight += 1
        self._num_turns += 1
        worker = self._workers.get(self._choose(turn))
        if worker is not None and worker.is_alive and len(worker.running) < SEATS:
            self._start(worker, turn)
            return
        if worker is not None:
            worker.waiting.append(turn)
        self._at(self._now + STEAL_AFTER_S, partial(self._offer, turn))

    def _choose(self, turn: Turn) -> str:
        match self._policy:
            case Policy.RANDOM:
                return self._rng.choice(self._names)
            case Policy.ROUND_ROBIN:
                self._num_in_turn += 1
                return self._names[self._num_in_turn % len(self._names)]
            case Policy.LEAST_LOADED:
                return next(iter(next(names for names in self._by_load if names)))
            case Policy.OURS:
                tenant = self._tenant(turn.tenant)
                prompt = turn.prompt(tenant)
                began_s = time.perf_counter()
                turn.route = self._table.choose(RoutedPrompt(prompt, tenant.name), self._now)
                self._choosing_s += time.perf_counter() - began_s
                return turn.route.worker_id if turn.route else self._rng.choice(self._names)

    def _tenant(self, number: int) -> Tenant:
        known = self._tenants.get(number)
        if known is None:
            known = self._tenants[number] = make_tenant(number)
        return known

    # ── Workers ──────────────────────────────────────────────────────────────────────────────

    def _start(self, worker: SimulatedWorker, turn: Turn) -> None:
        tenant = self._tenant(turn.tenant)
        num_prompt = len(tenant.tokens) + turn.number * TURN_TOKENS + _TOKENS_OF_ALL
        num_cached = PREAMBLE_TOKENS + worker.find(turn.tenant, turn.session)
        worker.keep(-1 - turn.tenant, len(tenant.tokens), turn.tenant, tenant.hashes)
        begin_s = max(self._now, worker.prefill_free_s)
        worker.prefill_free_s = begin_s + (num_prompt - num_cached) / PREFILL_TOKENS_PER_S
        worker.prefill_begins.append(begin_s)
        turn.is_running = True
        self._tokens[0] += num_prompt
        self._tokens[1] += num_cached
        self._ttfts.append(worker.prefill_free_s - turn.arrived_s)
        self._queues.append(begin_s - turn.arrived_s)
        self._move(worker, lambda: worker.running.add(turn))
        end_s = worker.prefill_free_s + OUTPUT_TOKENS * TOKEN_S
        self._at(end_s, partial(self._end, worker, turn, turn.epoch))

    def _end(self, worker: SimulatedWorker, turn: Turn, epoch: int) -> None:
        if turn.epoch != epoch:
            return
        self.num_in_flight -= 1
        if turn.route is not None:
            self._table.finish(turn.route)
        tenant = self._tenant(turn.tenant)
        history = turn.history(turn.number + 1)
        hashes = b""
        if self._policy is Policy.OURS:
            hashes = continue_hashes(tenant.hashes[-HASH_BYTES:], history, PAGE_SIZE)
        worker.keep(turn.session, len(history), turn.tenant, hashes)
        worker.find(turn.tenant, turn.session)
        self._move(worker, lambda: worker.running.discard(turn))
        if turn.num_left:
            after = Turn(turn.tenant, turn.session, turn.number + 1, turn.num_left - 1, 0.0)
            self._at(self._now + self._rng.expovariate(1 / THINK_S), partial(self._arrive, after))
        self._fill_seat(worker)

    def _fill_seat(self, worker: SimulatedWorker) -> None:
        """Claim: what is anybody's is older than what waits for this worker."""
        for queue in (self._open, worker.waiting):
            while queue:
                turn = queue.popleft()
                if not turn.is_running:
                    self._start(worker, turn)
                    return

    def _offer(self, turn: Turn) -> None:
        """Give a request that has waited long enough to whoever has a seat."""
        if turn.is_running:
            return
        self._num_stolen += 1
        for name in self._rng.sample(self._names, min(16, len(self._names))):
            worker = self._workers[name]
            if len(worker.running) < SEATS:
                self._start(worker, turn)
                return
        self._open.append(turn)

    def _move(self, worker: SimulatedWorker, change: Callable[[], None]) -> None:
        """Change what runs in a worker, and its place among the loads."""
        self._by_load[len(worker.running)].pop(worker.name, None)
        change()
        if worker.is_alive:
            self._by_load[len(worker.running)][worker.name] = None

    # ── The life of the fleet ────────────────────────────────────────────────────────────────

    def _start_worker(self) -> None:
        name = f"worker-{self._num_workers}"
        self._num_workers += 1
        worker = self._workers[name] = SimulatedWorker(name)
        self._names.append(name)
        self._move(worker, lambda: None)
        self._table.put_load(name, WorkerLoad(0, 0, SEATS, worker.num_free_pages))
        self._table.put_digest(name, self._digest(worker))

    def _fail(self) -> None:
        """Kill a worker: heartbeats end, leases run out, another one starts."""
        worker = self._workers[self._fates.choice(self._names)]
        worker.is_alive = False
        self._names.remove(worker.name)
        self._by_load[len(worker.running)].pop(worker.name, None)
        for turn in worker.running:
            turn.epoch, turn.is_running = turn.epoch + 1, False
            self._at(self._now + LEASE_S, partial(self._offer, turn))
        self._at(self._now + BEAT_TTL_S, partial(self._table.remove, worker.name))
        self._at(self._now + RESTART_S, self._start_worker)

    def _scale_out(self) -> None:
        for _ in range(max(1, round(self._size.workers * SCALE_OUT_SHARE))):
            self._start_worker()

    def _beat(self, number: int) -> None:
        """Tell the gateway the loads, and a third of the digests; note how unequal loads are."""
        alive = [self._workers[name] for name in self._names]
        loads = [len(worker.running) for worker in alive]
        if sum(loads):
            self._imbalances.append(max(loads) * len(loads) / sum(loads))
        self._num_beats += len(alive)
        if self._policy is Policy.OURS:
            for index, worker in enumerate(alive):
                waiting = worker.num_unstarted(self._now)
                load = WorkerLoad(
                    len(worker.running) - waiting, waiting, SEATS, worker.num_free_pages
                )
                self._table.put_load(worker.name, load)
                if index % DIGEST_BEATS == number % DIGEST_BEATS:
                    self._table.put_digest(worker.name, self._digest(worker))
        if self.num_in_flight or self._num_sessions < self._size.sessions:
            self._at(self._now + BEAT_S, partial(self._beat, number + 1))

    def _digest(self, worker: SimulatedWorker) -> PrefixDigest:
        runs: dict[str, list[bytes]] = {"": [PREAMBLE_HASHES]}
        for _, tenant, hashes in worker.cache.values():
            runs.setdefault(self._tenant(tenant).name, []).append(hashes)
        held = {tenant: b"".join(hashes) for tenant, hashes in runs.items()}
        return PrefixDigest.of(HeldPrefixes(PAGE_SIZE, 1, held))

    def _figures(self, ran_s: float) -> Figures:
        num_ops = self._num_turns * (STORE_OPS_PER_ANSWER + OUTPUT_TOKENS * STORE_OPS_PER_TOKEN)
        num_ops += self._num_beats * STORE_OPS_PER_BEAT
        ttfts, queues = sorted(self._ttfts), sorted(self._queues)
        is_ours = self._policy is Policy.OURS
        return Figures(
            policy=self._policy,
            num_answers=self._num_turns,
            hit_rate=self._tokens[1] / self._tokens[0],
            max_to_mean_load=sorted(self._imbalances)[len(self._imbalances) // 2],
            ttft_p50_s=ttfts[len(ttfts) // 2],
            ttft_p99_s=ttfts[len(ttfts) * 99 // 100],
            queue_p99_s=queues[len(queues) * 99 // 100],
            stolen=self._num_stolen / self._num_turns,
            store_ops_per_s=num_ops / self._now,
            decisions_per_s=self._num_turns / self._choosing_s if is_ours else None,
            ran_s=ran_s,
        )


def simulate(size: Size) -> list[Figures]:
    """Return the figures of every policy on the same sessions and failures."""
    return [Simulation(size, policy).run() for policy in Policy]


def print_table(size: Size, figures: list[Figures]) -> None:
    print(f"{size.workers:,} workers, {size.sessions:,} sessions of {size.tenants:,} tenants")
    print(
        f"{'routing':<16}{'hit rate':>9}{'max/mean':>9}{'TTFT p50':>10}{'p99':>9}"
        f"{'queue p99':>11}{'stolen':>8}{'store/s':>10}{'routed/s':>10}{'ran':>7}"
    )
    for each in figures:
        routed = f"{each.decisions_per_s:,.0f}" if each.decisions_per_s else ""
        print(
            f"{each.policy:<16}{each.hit_rate:>9.1%}{each.max_to_mean_load:>9.2f}"
            f"{1e3 * each.ttft_p50_s:>7.0f} ms{1e3 * each.ttft_p99_s:>6.0f} ms"
            f"{1e3 * each.queue_p99_s:>8.0f} ms{each.stolen:>8.2%}{each.store_ops_per_s:>10,.0f}"
            f"{routed:>10}{each.ran_s:>5.0f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--tenants", type=int, default=5_000)
    parser.add_argument("--quick", action="store_true", help="a small fleet, and no record")
    args = parser.parse_args()
    size = QUICK if args.quick else Size(args.workers, args.sessions, args.tenants)
    figures = simulate(size)
    print_table(size, figures)
    if not args.quick:
        record = {"size": asdict(size), "policies": [asdict(each) for each in figures]}
        print(f"raw figures: {write_record('fleet', record)}")


QUICK = Size(workers=20, sessions=4_000, tenants=200)


if __name__ == "__main__":
    main()
