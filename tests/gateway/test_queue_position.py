"""Queue positions, told on change while a request waits."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatserve.engine.api import RequestId
from chatserve.errors import StoreError
from chatserve.gateway import queue_position
from chatserve.gateway.generation import Answer
from chatserve.gateway.queue_position import tell_position
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import ResponseRecord


class Queue:
    """Gives the positions of a script, one each time it is asked."""

    def __init__(self, *positions: int | StoreError | None) -> None:
        self._positions = list(positions)

    async def position(self, _request_id: RequestId, _model: str) -> int | None:
        position = self._positions.pop(0)
        if isinstance(position, StoreError):
            raise position
        return position


async def no_entries() -> AsyncIterator[LogEntry]:
    return
    yield


def waiting_at(position: int) -> Answer:
    record = ResponseRecord(
        response_id=RequestId("r"), model="m", created_at=1, ttl_s=1, assistant_message_id="msg"
    )
    return Answer(record, no_entries(), position)


async def told(queue: Any, answer: Answer) -> list[int]:
    return [position async for position in tell_position(queue, answer)]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_position, "POLL_S", 0.0)


async def test_position_is_told_at_first_and_on_change_until_it_is_claimed() -> None:
    queue = Queue(3, 2, 2, 0, None)

    assert await told(queue, waiting_at(3)) == [3, 2, 0]


async def test_store_that_is_away_for_a_moment_is_asked_again() -> None:
    queue = Queue(StoreError("away"), 1, None)

    assert await told(queue, waiting_at(2)) == [2, 1]
