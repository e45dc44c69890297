"""How many bytes of bodies may be on their way at once."""

import asyncio

import pytest

from chatserve.errors import Unavailable
from chatserve.gateway.body_budget import BodyBudget


def test_bodies_share_the_room_and_give_it_back_when_they_end() -> None:
    budget = BodyBudget(max_bytes=10)

    with budget.reading() as take, budget.reading() as take_other:
        take(4)
        take_other(6)
        with pytest.raises(Unavailable) as refusal:
            take(1)

    assert (refusal.value.status, refusal.value.code) == (503, "too_many_bodies")
    with budget.reading() as take_all:
        take_all(10)


def test_body_that_is_broken_off_gives_its_room_back() -> None:
    budget = BodyBudget(max_bytes=10)
    reading = budget.reading()
    take = reading.__enter__()
    take(10)

    reading.__exit__(ZeroDivisionError, None, None)

    with budget.reading() as take_all:
        take_all(10)


async def test_large_bodies_are_looked_at_in_different_turns_of_the_event_loop() -> None:
    """Twenty that arrived at once were one pause of the sum of what each takes."""
    budget = BodyBudget()
    num_turns = 0
    seen: list[int] = []

    async def count_turns() -> None:
        nonlocal num_turns
        while True:
            num_turns += 1
            await asyncio.sleep(0)

    async def look(num_bytes: int) -> None:
        await budget.turn(num_bytes)
        seen.append(num_turns)

    counting = asyncio.create_task(count_turns())
    await asyncio.gather(*(look(2**20) for _ in range(20)))
    of_large = sorted(set(seen))
    seen.clear()
    await asyncio.gather(*(look(100) for _ in range(20)))
    counting.cancel()

    assert len(of_large) == 20
    assert len(set(seen)) == 1
