"""Queue positions, told on change while a request waits."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from gateway.gateway_helpers import Service, WorkerSettings, kinds_of, run_service

from chatserve.engine.api import RequestId
from chatserve.errors import StoreError
from chatserve.gateway import queue_position
from chatserve.gateway.generation import Answer
from chatserve.gateway.queue_position import QueuePlaces
from chatserve.store.fair_queue import Place
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import ResponseRecord


class Queue:
    """Gives the positions of a script, one each time it is asked."""

    def __init__(self, *positions: int | StoreError | None) -> None:
        self._positions = list(positions)
        self.asked: list[list[RequestId]] = []

    async def positions(self, request_ids: Sequence[RequestId]) -> list[Place | None]:
        self.asked.append(sorted(request_ids))
        position = self._positions.pop(0)
        if isinstance(position, StoreError):
            raise position
        place = None if position is None else Place(position, 1000 * position)
        return [place for _ in request_ids]


async def no_entries() -> AsyncIterator[LogEntry]:
    return
    yield


def waiting_at(position: int, name: str = "r") -> Answer:
    record = ResponseRecord(
        response_id=RequestId(name), model="m", created_at=1, ttl_s=1, assistant_message_id="msg"
    )
    return Answer(record, no_entries(), Place(position, None))


async def told(queue: Any, answer: Answer) -> list[int]:
    return [place.position async for place in QueuePlaces(queue).tell(answer)]


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_position, "POLL_S", 0.02)
    monkeypatch.setattr(queue_position, "_ROUND_S", 0.02)


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

    places = [place async for place in QueuePlaces(queue).tell(waiting_at(3))]

    assert places == [Place(3, None), Place(2, 2000)]


async def test_place_of_an_answer_that_was_started_elsewhere_is_found_out() -> None:
    answer = Answer(waiting_at(0).record, no_entries())

    assert await told(Queue(2, 1, None), answer) == [2, 1]


async def test_all_that_wait_are_looked_for_at_once() -> None:
    queue = Queue(2, 1, None)
    places = QueuePlaces(queue)  # type: ignore[arg-type]
    names = [f"r{number}" for number in range(9)]

    async def tell(name: str) -> list[int]:
        return [place.position async for place in places.tell(waiting_at(3, name))]

    assert await asyncio.gather(*map(tell, names)) == [[3, 2, 1]] * 9
    assert queue.asked == [names] * 3


async def test_two_updates_are_at_least_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    queue: Any = Queue(2, 1, None)
    loop = asyncio.get_running_loop()

    times = [loop.time() async for _ in QueuePlaces(queue).tell(waiting_at(3))]

    assert len(times) == 3
    assert all(later - earlier >= 0.99 for earlier, later in pairwise(times))


async def test_looks_to_come_end_with_the_gateway() -> None:
    places = QueuePlaces(Queue())  # type: ignore[arg-type]
    telling = asyncio.ensure_future(anext(places.tell(waiting_at(0))))
    await asyncio.sleep(0)

    await places.aclose()

    with pytest.raises(asyncio.CancelledError):
        await telling


async def wait_behind_another(service: Service, text: str) -> str:
    """Create an answer that waits in the queue, and leave; return its id."""
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("a", stream_id="running", background=True)
        await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.create(text, stream_id="waiting", background=True)
        events = await socket.receive_until("response.queued")
    response_id: str = events[-1]["response"]["id"]
    return response_id


async def test_who_comes_back_to_a_waiting_answer_is_told_its_place(store_url: str) -> None:
    """A reader that had `response.queued` already used to hear nothing while it waited."""
    worker = WorkerSettings(max_claims=1)
    async with run_service(store_url, worker=worker) as service:
        response_id = await wait_behind_another(service, "b")
        async with service.socket() as socket:
            await socket.send(
                "chatserve:response.resume", response_id=response_id, starting_after=1
            )
            update = await socket.receive()
            service.model.release()
            rest = await socket.receive_answer()

    assert (update["type"], update["position"]) == ("chatserve:queue.updated", 0)
    assert "chatserve:queue.updated" not in kinds_of(rest)
