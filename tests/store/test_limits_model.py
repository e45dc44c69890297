"""Random requests of two keys of a tenant against meters in plain Python.

The model never sees a meter. It charges each request at its enqueue with what it used in the end,
which is what a limit is about, and checks every span of time: what was taken in it is no more than
the limit and what runs down meanwhile. A second model repeats the rules of reserving and settling,
so that nothing is refused for too long. Workers are killed on the way, and usage is counted.
"""

import random
import time
from dataclasses import dataclass, field

import pytest
from store.limit_helpers import (
    PROMPT_LEN,
    TENANT,
    ask,
    claim_all,
    end_of,
    is_taken,
    pass_time,
    total_of,
    total_of_responses,
)
from store.store_helpers import append, expire_leases

from chatserve.engine.api import RequestId
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Place
from chatserve.store.limits import ScopeLimits
from chatserve.store.queue import MAX_TAKEOVERS

# Multiples of 6, so that a whole number runs down in ten seconds.
LIMITS = {f"tenant:{TENANT}": 30, "key:k0": 18, "key:k1": 24}
STEPS = 60


@dataclass
class Taken:
    """A request that was taken; `used` is known when it has ended. `epoch` counts its leases."""

    scopes: tuple[str, ...]
    at_s: int
    reserved: int
    is_leased: bool = False
    epoch: int = 0
    used: int = 0
    has_ended: bool = False


@dataclass
class Model:
    """What was taken, and how high the meters stand if they follow their rules."""

    store: Store
    rng: random.Random
    now_s: int = 0
    requests: dict[str, Taken] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LIMITS, 0.0))
    started_at: float = field(default_factory=time.monotonic)

    @property
    def slack(self) -> float:
        """How many tokens the store may be ahead: its clock runs on while the test does."""
        return 0.1 + 2 * max(LIMITS.values()) * (time.monotonic() - self.started_at) / 60

    async def enqueue(self) -> None:
        scopes = (f"tenant:{TENANT}", self.rng.choice(("key:k0", "key:k1")))
        tokens = self.rng.randint(PROMPT_LEN, 12)
        name = f"r{len(self.requests)}-{self.now_s}-{self.rng.randint(0, 10**9)}"
        limits = [ScopeLimits(each, tokens=LIMITS[each]) for each in scopes]
        is_taken_now = isinstance(await ask(self.store, name, *limits, tokens=tokens), Place)
        rooms = [LIMITS[each] - self.levels[each] - tokens for each in scopes]
        if abs(min(rooms)) > self.slack:
            assert is_taken_now == (min(rooms) > 0), f"{name} of {tokens} with {rooms} left"
        if is_taken_now:
            self.requests[name] = Taken(scopes, self.now_s, tokens)
            for each in scopes:
                self.levels[each] += tokens

    async def wait(self) -> None:
        seconds = self.rng.choice((10, 20, 30))
        await pass_time(self.store, seconds)
        self.now_s += seconds
        for scope, limit in LIMITS.items():
            self.levels[scope] = max(0.0, self.levels[scope] - limit * seconds / 60)

    async def claim(self) -> None:
        for name in await claim_all(self.store):
            self.requests[name].is_leased = True
            self.requests[name].epoch += 1

    async def lose(self) -> None:
        """Let the worker of a request be killed: another takes it over, or it ends."""
        leased = [name for name, each in self.requests.items() if each.is_leased]
        if not leased:
            return
        name = self.rng.choice(leased)
        self.requests[name].is_leased = False
        await expire_leases(self.store, name)
        await self.store.queue.reap()
        if self.requests[name].epoch > MAX_TAKEOVERS:
            self._settle(self.requests[name], PROMPT_LEN)

    async def end(self) -> None:
        """End a request: by its worker if one has it, else by a cancel in the queue."""
        running = [name for name, each in self.requests.items() if not each.has_ended]
        if not running:
            return
        name = self.rng.choice(running)
        taken = self.requests[name]
        if taken.is_leased:
            num_output = self.rng.randint(0, taken.reserved - PROMPT_LEN)
            await append(self.store, end_of(name, num_output, epoch=taken.epoch))
            self._settle(taken, PROMPT_LEN + num_output)
        else:
            await self.store.queue.cancel(RequestId(name))
            self._settle(taken, PROMPT_LEN if taken.epoch else 0)

    def _settle(self, taken: Taken, used: int) -> None:
        taken.used, taken.has_ended, taken.is_leased = used, True, False
        for scope in taken.scopes:
            drained = LIMITS[scope] * (self.now_s - taken.at_s) / 60
            back = max(0.0, taken.reserved - max(taken.used, drained))
            self.levels[scope] = max(0.0, self.levels[scope] - back)

    async def end_all(self) -> None:
        while any(not each.has_ended for each in self.requests.values()):
            await self.end()

    async def check_usage(self) -> None:
        """Compare what was counted with the sum over the response objects."""
        assert (await total_of(self.store)) == await total_of_responses(self.store, *self.requests)

    def check_every_span(self) -> None:
        for scope, limit in LIMITS.items():
            taken = [each for each in self.requests.values() if scope in each.scopes]
            for first in taken:
                for last in taken:
                    span = [each for each in taken if first.at_s <= each.at_s <= last.at_s]
                    bound = limit * (1 + max(0, last.at_s - first.at_s) / 60) + self.slack
                    assert sum(each.used for each in span) <= bound, f"{scope}: {span}"


@pytest.mark.parametrize("seed", range(12))
async def test_no_span_of_time_passes_a_limit_and_nothing_is_refused_for_too_long(
    store: Store, seed: int
) -> None:
    model = Model(store, random.Random(seed))

    steps = (model.enqueue, model.enqueue, model.wait, model.claim, model.end, model.lose)
    for _ in range(STEPS):
        await model.rng.choice(steps)()
    await model.end_all()

    model.check_every_span()
    await model.check_usage()


async def test_meter_stands_at_zero_when_all_has_ended_and_a_minute_is_over(store: Store) -> None:
    scope = ScopeLimits(f"tenant:{TENANT}", tokens=30)
    await ask(store, "a", scope, tokens=30)
    await claim_all(store)
    await expire_leases(store, "a")
    await store.queue.reap()
    await pass_time(store, 60)

    assert await is_taken(store, "b", scope, tokens=30)
