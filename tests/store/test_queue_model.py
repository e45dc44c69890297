"""Random lives of many requests against a model in plain Python.

The model is the picture at the top of `queue.py`: a list of names that wait, and for each request
its owner, epoch and numbers. After every step the store is recounted and compared with it.
"""

import random
from dataclasses import dataclass, field

import pytest
from store.store_helpers import (
    LEASE_MS,
    MODEL,
    check_invariants,
    deltas,
    ending,
    enqueue,
    expire_leases,
)

from chatserve.engine.api import RequestId
from chatserve.store.connection import Store
from chatserve.store.queue import MAX_TAKEOVERS, CancelOutcome

WORKERS = ("w0", "w1", "w2")
STEPS = 120


@dataclass
class Life:
    """What the model knows of one request."""

    owner: str | None = None
    epoch: int = 0
    next_sequence: int = 2
    text: str = ""
    times_lost: int = 0
    is_cancelled: bool = False
    has_ended: bool = False


@dataclass
class Model:
    """The oracle: who waits, who is leased, who has ended."""

    store: Store
    rng: random.Random
    lives: dict[str, Life] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)

    async def enqueue(self) -> None:
        name = f"r{len(self.lives)}"
        await enqueue(self.store, name)
        self.lives[name] = Life()
        self.waiting.append(name)

    async def claim(self) -> None:
        worker, limit = self.rng.choice(WORKERS), self.rng.randint(1, 3)
        claims = await self.store.queue.claim(worker, MODEL, limit, LEASE_MS)
        expected, self.waiting = self.waiting[:limit], self.waiting[limit:]
        assert [claim.request.request_id for claim in claims] == expected
        for claim in claims:
            life = self.lives[claim.request.request_id]
            life.owner, life.epoch = worker, life.epoch + 1
            assert (claim.epoch, claim.next_sequence) == (life.epoch, life.next_sequence)
            assert claim.logged_text == life.text

    async def write(self) -> None:
        """Append under the right epoch or a late one, a delta or the end."""
        name, life = self._any()
        epoch = self.rng.choice((life.epoch, life.epoch, life.epoch - 1))
        is_end = self.rng.random() < 0.3
        append = (ending if is_end else deltas)(name, epoch, life.next_sequence, "x")
        is_owned = life.owner is not None and epoch == life.epoch
        assert await self.store.log.append([append]) == [is_owned]
        if is_owned:
            life.next_sequence += 1
            if is_end:
                life.owner, life.has_ended = None, True
            else:
                life.text += "x"

    async def release(self) -> None:
        worker = self.rng.choice(WORKERS)
        held = [name for name, life in self.lives.items() if life.owner == worker]
        await self.store.queue.release(worker, [RequestId(name) for name in held])
        self._give_back(held)

    async def lose(self) -> None:
        name, life = self._any()
        await expire_leases(self.store, name)
        reaped = await self.store.queue.reap()
        assert reaped == ([name] if life.owner else [])
        for lost in reaped:
            self.lives[lost].times_lost += 1
            self._give_back([lost])

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
            self.waiting.remove(name)
            life.has_ended = True

    async def check(self) -> None:
        await check_invariants(self.store)
        assert await self.store.commands.call("LRANGE", f"cs:queue:{MODEL}", 0, -1) == self.waiting
        leased = {name for name, life in self.lives.items() if life.owner}
        assert set(await self.store.commands.call("ZRANGE", "cs:leases", 0, -1)) == leased

    def _any(self) -> tuple[str, Life]:
        """Choose a request, mostly one that has not ended."""
        alive = [item for item in self.lives.items() if not item[1].has_ended]
        pool = alive if alive and self.rng.random() < 0.8 else list(self.lives.items())
        return self.rng.choice(pool)

    def _give_back(self, names: list[str]) -> None:
        stays = []
        for name in names:
            life = self.lives[name]
            life.owner = None
            life.has_ended = life.is_cancelled or life.times_lost > MAX_TAKEOVERS
            if not life.has_ended:
                stays.append(name)
        self.waiting = stays + self.waiting


@pytest.mark.parametrize("seed", range(4))
async def test_requests_are_always_where_the_model_says(store: Store, seed: int) -> None:
    model = Model(store, random.Random(seed))
    await model.enqueue()
    steps = [model.enqueue, model.claim, model.write, model.release, model.lose, model.cancel]

    for _ in range(STEPS):
        step = model.rng.choices(steps, weights=[4, 5, 8, 1, 4, 2])[0]
        await step()
        await model.check()
