"""Queue positions, told on change while a request waits."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatserve.engine.api import RequestId
from chatserve.errors import StoreError
from chatserve.gateway import queue_position
from chatserve.gateway.generation import Answer
from chatserve.gateway.queue_position import tell_place
from chatserve.store.fair_queue import Place
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import ResponseRecord


class Queue:
    """Gives the positions of a script, one each time it is asked."""

    def __init__(self, *positions: int | StoreError | None) -> None:
        self._positions = list(positions)

    async def position(self, _request_id: RequestId) -> Place | None:
        position = self._positions.pop(0)
        if isinstance(position, StoreError):
            raise position
        return None if position is None else Place(position, 1000 * position)


async def no_entries() -> AsyncIterator[LogEntry]:
    return
    yield


def waiting_at(position: int) -> Answer:
    record = ResponseRecord(
        response_id=RequestId("r"), model="m", created_at=1, ttl_s=1, assistant_message_id="msg"
    )
    return Answer(record, no_entries(), Place(position, None))


async def told(queue: Any, answer: Answer) -> list[int]:
    return [place.position async for place in tell_place(queue, answer)]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_position, "POLL_S", 0.0)


async def test_position_is_told_at_first_and_on_change_until_it_is_claimed() -> None:
    queue = Queue(3, 2, 2, 0, None)

    assert await told(queue, waiting_at(3)) == [3, 2, 0]


async def test_store_that_is_away_for_a_moment_is_asked_again() -> None:
    queue = Queue(StoreError("away"), 1, None)

    assert await told(queue, waiting_at(2)) == [2, 1]


async def test_first_of_its_line_is_told_only_if_it_still_waits() -> None:
    claimed_at_once, still_waiting = Queue(None), Queue(0, 0, None)

    assert await told(claimed_at_once, waiting_at(0)) == []
    assert await told(still_waiting, waiting_at(0)) == [0]


async def test_estimate_is_the_one_of_the_last_look() -> None:
    queue: Any = Queue(2, None)

    places = [place async for place in tell_place(queue, waiting_at(3))]

    assert places == [Place(3, None), Place(2, 2000)]


async def test_place_of_an_answer_that_was_started_elsewhere_is_found_out() -> None:
    answer = Answer(waiting_at(0).record, no_entries())

    assert await told(Queue(2, 1, None), answer) == [2, 1]
