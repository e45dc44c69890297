"""Random lives of many requests against a model in plain Python.

The model is the picture at the top of `queue.py`: who waits, and for each request its owner, epoch
and numbers. Whose turn it is says the oracle of the fair queue. After every step the store is
recounted and compared with both.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import pytest
from store.fair_queue_oracle import FairQueueOracle
from store.queue_recount import counters
from store.store_helpers import (
    LEASE_MS,
    MODEL,
    check_invariants,
    deltas,
    end_time,
    ending,
    enqueue,
    expire_leases,
)

from chatserve.engine.api import RequestId
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.fair_queue import TokenWeights
from chatserve.store.queue import MAX_TAKEOVERS, CancelOutcome

WORKERS = ("w0", "w1", "w2")
ROUTES = (None, None, *WORKERS, "gone")
STEAL_AFTER_MS = (0, 3_600_000)
TENANTS = ("default", "acme", "ü:7:b")
WEIGHTS = (TokenWeights(), TokenWeights(3, 5))
PROMPT_LEN = 3
FINAL_LEN = 2
STEPS = 120


@dataclass
class Life:
    """What the model knows of one request. `rank` is its priority, then its place in time."""

    tenant: str
    rank: tuple[int, int]
    has_timeout: bool
    route: str | None
    owner: str | None = None
    output_weight: int = 0
    num_output: int = 0
    epoch: int = 0
    next_sequence: int = 2
    text: str = ""
    times_lost: int = 0
    is_cancelled: bool = False
    is_overdue: bool = False
    has_ended: bool = False


@dataclass
class Model:
    """The oracle: who waits, who is leased, who has ended."""

    store: Store
    rng: random.Random
    lives: dict[str, Life] = field(default_factory=dict)
    queue: FairQueueOracle = field(default_factory=FairQueueOracle)

    async def enqueue(self) -> None:
        name, tenant = f"r{len(self.lives)}", self.rng.choice(TENANTS)
        priority, has_timeout = self.rng.randint(-1, 1), self.rng.random() < 0.5
        timeout_ms = 3_600_000 if has_timeout else None
        route = self.rng.choice(ROUTES)
        fields: dict[str, Any] = {"priority": priority, "timeout_ms": timeout_ms}
        await enqueue(self.store, name, route=route, tenant=tenant, **fields)
        self.lives[name] = Life(tenant, (priority, len(self.lives)), has_timeout, route)
        self.queue.enter(name, tenant, self.lives[name].rank)

    async def claim(self) -> None:
        worker, limit = self.rng.choice(WORKERS), self.rng.randint(1, 3)
        weights, steal_after_ms = self.rng.choice(WEIGHTS), self.rng.choice(STEAL_AFTER_MS)
        claims = await self.store.queue.claim(
            worker, MODEL, limit, LEASE_MS, weights, steal_after_ms
        )
        open_routes = ROUTES if steal_after_ms == 0 else (None, worker)
        for claim in claims:
            name = self._next_in_time(open_routes)
            assert name is not None
            life = self.lives[name]
            self.queue.leave(name)
            self.queue.begin_lease(name, 0 if life.epoch else weights.input * PROMPT_LEN)
            life.owner, life.epoch, life.output_weight = worker, life.epoch + 1, weights.output
            assert (claim.request.request_id, claim.epoch) == (name, life.epoch)
            assert (claim.next_sequence, claim.logged_text) == (life.next_sequence, life.text)
        assert len(claims) == limit or self._next_in_time(open_routes) is None
        self.queue.forget()

    async def write(self) -> None:
        """Append under the right epoch or a late one, a delta or the end."""
        name, life = self._any()
        epoch = self.rng.choice((life.epoch, life.epoch, life.epoch - 1))
        is_end = self.rng.random() < 0.3
        append = (ending if is_end else deltas)(name, epoch, life.next_sequence, "x")
        is_owned = life.owner is not None and epoch == life.epoch
        assert await self.store.log.append([append]) == [is_owned]
        if is_owned:
            num_new = max(0, FINAL_LEN - life.num_output) if is_end else 1
            self.queue.charge(name, num_new * life.output_weight)
            life.next_sequence, life.num_output = life.next_sequence + 1, life.num_output + num_new
            if is_end:
                self._end(name)
            else:
                life.text += "x"

    async def release(self) -> None:
        worker = self.rng.choice(WORKERS)
        held = [name for name, life in self.lives.items() if life.owner == worker]
        await self.store.queue.release(worker, [RequestId(name) for name in held])
        for name in held:
            self._give_back(name)

    async def lose(self) -> None:
        name, life = self._any()
        await expire_leases(self.store, name)
        reaped = await self.store.queue.reap()
        assert reaped == ([name] if life.owner else [])
        for lost in reaped:
            self.lives[lost].times_lost += 1
            self._give_back(lost)

    async def run_out_of_time(self) -> None:
        """Let the time of a request be over; whoever looks at the queue next may end it."""
        name, life = self._any()
        if not life.has_timeout or life.has_ended:
            return
        await end_time(self.store, name)
        life.is_overdue = True
        if self.rng.random() < 0.5:
            overdue = {each for each in self.queue.ranks if self.lives[each].is_overdue}
            assert set(await self.store.queue.end_overdue()) == overdue
            for each in overdue:
                self._end(each)

    async def cancel(self) -> None:
        name, life = self._any()
        outcome = await self.store.queue.cancel(RequestId(name))
        if life.has_ended:
            assert outcome is CancelOutcome.ALREADY_FINISHED
        elif life.owner:
            assert outcome is CancelOutcome.SIGNALLED
            life.is_cancelled = True
        else:
            assert outcome is CancelOutcome.FINISHED_IN_QUEUE
            self._end(name)

    async def check(self) -> None:
        await check_invariants(self.store)
        assert await counters(self.store, MODEL) == self.queue.counters
        for tenant in TENANTS:
            key = keys.FIRST.key(keys.line(MODEL, tenant))
            line = await self.store.commands.call("ZRANGE", key, 0, -1)
            assert line == self.queue.line(tenant)
        leased = {name for name, life in self.lives.items() if life.owner}
        assert (
            set(await self.store.commands.call("ZRANGE", keys.FIRST.key(keys.LEASES), 0, -1))
            == leased
        )
        ended = {name for name, life in self.lives.items() if life.has_ended}
        assert set(self.lives) == ended | leased | set(self.queue.ranks)

    def _any(self) -> tuple[str, Life]:
        """Choose a request, mostly one that has not ended."""
        alive = [item for item in self.lives.items() if not item[1].has_ended]
        pool = alive if alive and self.rng.random() < 0.8 else list(self.lives.items())
        return self.rng.choice(pool)

    def _next_in_time(self, open_routes: Collection[str | None]) -> str | None:
        """Return whose turn it is, after ending those before it whose time is over."""

        def is_open(name: str) -> bool:
            return self.lives[name].is_overdue or self.lives[name].route in open_routes

        while (name := self.queue.next(is_open)) is not None and self.lives[name].is_overdue:
            self._end(name)
        return name

    def _give_back(self, name: str) -> None:
        life = self.lives[name]
        if life.is_cancelled or life.times_lost > MAX_TAKEOVERS:
            self._end(name)
            return
        life.owner = None
        self.queue.end_lease(name)
        self.queue.enter(name, life.tenant, life.rank)

    def _end(self, name: str) -> None:
        life = self.lives[name]
        if life.owner is None:
            self.queue.leave(name)
        else:
            self.queue.end_lease(name)
        life.owner, life.has_ended = None, True
        self.queue.forget()


@pytest.mark.parametrize("seed", range(4))
async def test_requests_are_always_where_the_model_says(store: Store, seed: int) -> None:
    model = Model(store, random.Random(seed))
    await model.enqueue()
    steps = {
        model.enqueue: 4,
        model.claim: 5,
        model.write: 8,
        model.release: 1,
        model.lose: 4,
        model.cancel: 2,
        model.run_out_of_time: 2,
    }

    for _ in range(STEPS):
        step = model.rng.choices(list(steps), weights=list(steps.values()))[0]
        await step()
        await model.check()
