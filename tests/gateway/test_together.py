"""Work that stands or falls together."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from chatserve.gateway.together import run_together


@pytest_asyncio.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Endless:
    """Work that only a cancel ends, and that notes how it went."""

    def __init__(self) -> None:
        self.has_started = asyncio.Event()
        self.has_unwound = False

    async def run(self) -> None:
        try:
            self.has_started.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.has_unwound = True


async def test_results_stand_in_the_order_of_the_works() -> None:
    first_may_end = asyncio.Event()

    async def first() -> str:
        await first_may_end.wait()
        return "first"

    async def second() -> str:
        first_may_end.set()
        return "second"

    assert await run_together([first(), second()]) == ["first", "second"]


async def test_first_failure_is_raised_as_it_is_once_the_rest_has_unwound() -> None:
    endless = Endless()
    cause, failure = OSError("why"), ValueError("what")

    async def fail() -> None:
        await endless.has_started.wait()
        raise failure from cause

    with pytest.raises(ValueError, match="what") as caught:
        await run_together([endless.run(), fail()])

    assert caught.value is failure
    assert caught.value.__cause__ is cause
    assert endless.has_unwound


@pytest.mark.parametrize("num_cancels", [1, 2])
async def test_cancel_ends_all_and_returns_once_they_have_unwound(num_cancels: int) -> None:
    works = [Endless(), Endless(), Endless()]
    running = asyncio.create_task(run_together(work.run() for work in works))
    for work in works:
        await work.has_started.wait()

    for _ in range(num_cancels):
        running.cancel()
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        await running
    assert all(work.has_unwound for work in works)


async def test_work_that_is_cancelled_before_it_began_is_never_made() -> None:
    made: list[int] = []

    async def note(number: int) -> None:
        made.append(number)

    running = asyncio.create_task(run_together(note(number) for number in range(3)))
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert made == []
