"""Places that parties take turns for."""

import asyncio

import pytest

from chatserve.errors import TooManyInFlight
from chatserve.gateway import fair_turns
from chatserve.gateway.fair_turns import FairTurns


class Workers:
    """Parties that want places, and the order in which they got them."""

    def __init__(self, num_places: int, *, num_of_party: int) -> None:
        self.turns = FairTurns(num_places, num_of_party=num_of_party)
        self.order: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def ask(self, party: str, times: int = 1) -> list[asyncio.Task[None]]:
        asking = [asyncio.create_task(self._enter(party)) for _ in range(times)]
        self._tasks += asking
        await settle()
        return asking

    async def leave(self, party: str) -> None:
        self.turns.leave(party)
        await settle()

    async def _enter(self, party: str) -> None:
        await self.turns.enter(party)
        self.order.append(party)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_party_never_has_all_places() -> None:
    workers = Workers(3, num_of_party=2)

    await workers.ask("bob", 24)
    await workers.ask("eve")

    assert workers.order == ["bob", "bob", "eve"]
    await workers.stop()


async def test_lines_are_served_turn_and_turn_about() -> None:
    workers = Workers(1, num_of_party=1)
    await workers.ask("bob", 4)
    await workers.ask("eve", 2)
    await workers.ask("ann", 1)

    for party in ("bob", "bob", "eve", "ann", "bob", "eve"):
        await workers.leave(party)

    assert workers.order == ["bob", "bob", "eve", "ann", "bob", "eve", "bob"]
    await workers.stop()


async def test_waiter_that_is_cancelled_leaves_its_line() -> None:
    workers = Workers(1, num_of_party=1)
    await workers.ask("bob")
    [gone] = await workers.ask("eve")
    await workers.ask("ann")

    gone.cancel()
    await workers.leave("bob")

    assert workers.order == ["bob", "ann"]
    assert workers.turns._lines == {}
    await workers.stop()


async def test_waiter_that_is_cancelled_as_its_turn_comes_passes_the_place_on() -> None:
    workers = Workers(1, num_of_party=1)
    await workers.ask("bob")
    [gone] = await workers.ask("eve")
    await workers.ask("ann")

    workers.turns.leave("bob")
    gone.cancel()
    await settle()

    assert workers.order == ["bob", "ann"]
    await workers.stop()


async def test_waiter_that_is_cancelled_before_it_has_noticed_gets_no_place() -> None:
    workers = Workers(1, num_of_party=1)
    await workers.ask("bob")
    [gone] = await workers.ask("eve")
    await workers.ask("ann")

    gone.cancel()
    workers.turns.leave("bob")
    await settle()

    assert workers.order == ["bob", "ann"]
    await workers.stop()


async def test_place_is_given_back_whatever_happens_in_it() -> None:
    turns = FairTurns(1, num_of_party=1)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            async with turns.turn("bob"):
                raise ZeroDivisionError

    async with turns.turn("eve"):
        pass


async def test_too_long_a_line_is_refused_and_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_turns, "MAX_WAITING", 2)
    workers = Workers(1, num_of_party=1)
    await workers.ask("bob", 3)

    with pytest.raises(TooManyInFlight) as refusal:
        await workers.turns.enter("bob")

    assert (refusal.value.status, refusal.value.code) == (429, "too_many_waiting")
    [waiting] = await workers.ask("eve")
    assert not waiting.done()
    await workers.stop()
