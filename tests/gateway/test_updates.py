"""What readers are told of an answer between its events."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx
import pytest
from gateway.gateway_helpers import Service, WorkerSettings, kinds_of, run_service, sse_data

from chatserve.engine.api import EngineStats, Prefill, RequestId
from chatserve.engine.worker import WorkerTimes
from chatserve.errors import StoreError
from chatserve.gateway import updates
from chatserve.gateway.generation import Answer
from chatserve.gateway.updates import Updates
from chatserve.store.fair_queue import Place
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import ResponseRecord
from chatserve.store.stage import Stage
from chatserve.store.workers import WorkerBeat

Event = dict[str, Any]
QUEUED_NUMBER = 1


class Queue:
    """Tells the stages of a script, one each time it is asked."""

    def __init__(self, *stages: int | Stage | StoreError | None) -> None:
        self._stages = list(stages)
        self.asked: list[list[RequestId]] = []

    async def stages(self, request_ids: Sequence[RequestId]) -> list[Stage | None]:
        self.asked.append(sorted(request_ids))
        stage = self._stages.pop(0)
        if isinstance(stage, StoreError):
            raise stage
        if isinstance(stage, int):
            stage = Stage(place=Place(stage, 1000 * stage))
        return [stage for _ in request_ids]


@dataclass(slots=True)
class Models:
    """The workers of one model, by name; those `arriving` are seen with the next refresh."""

    names: list[str] = field(default_factory=lambda: ["w1"])
    arriving: list[str] = field(default_factory=list)

    @property
    def beats(self) -> list[WorkerBeat]:
        return [WorkerBeat(name, "m", "card", "1", EngineStats()) for name in self.names]

    async def refresh(self) -> None:
        self.names += self.arriving
        self.arriving = []


async def no_entries() -> AsyncIterator[LogEntry]:
    return
    yield


def waiting_at(position: int, name: str = "r") -> Answer:
    record = ResponseRecord(
        response_id=RequestId(name), model="m", created_at=1, ttl_s=1, assistant_message_id="msg"
    )
    return Answer(record, no_entries(), Place(position, None))


class Reader:
    """Somebody who is told updates of an answer."""

    def __init__(self, queue: Queue, answer: Answer, models: Models | None = None) -> None:
        self.updates: list[Event] = []
        self.times: list[float] = []
        self._updates = Updates(queue, models or Models())  # type: ignore[arg-type]
        self._answer = answer
        self._queue = queue

    async def send(self, update: Event) -> None:
        self.updates.append(update)
        self.times.append(asyncio.get_running_loop().time())

    async def listen(self, num_looks: int, after: int = QUEUED_NUMBER) -> list[Event]:
        """Return the updates of so many looks into the queue."""
        with self._updates.telling(self._answer, after, self.send):
            async with asyncio.timeout(10):
                while len(self._queue.asked) < num_looks:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.005)
            await asyncio.sleep(0.01)
        return self.updates


async def positions(queue: Queue, answer: Answer, num_looks: int) -> list[int]:
    told = await Reader(queue, answer).listen(num_looks)
    return [update["position"] for update in told]


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "POLL_S", 0.02)
    monkeypatch.setattr(updates, "_ROUND_S", 0.02)


async def test_position_is_told_at_first_and_on_change_until_the_answer_ends() -> None:
    assert await positions(Queue(3, 2, 2, 0, None), waiting_at(3), 5) == [3, 2, 0]


async def test_store_that_is_away_for_a_moment_is_asked_again() -> None:
    assert await positions(Queue(StoreError("away"), 1, None), waiting_at(2), 3) == [2, 1]


async def test_first_of_its_line_is_told_only_if_it_still_waits() -> None:
    assert await positions(Queue(None), waiting_at(0), 1) == []
    assert await positions(Queue(0, 0, None), waiting_at(0), 3) == [0]


async def test_estimate_is_the_one_of_the_last_look() -> None:
    told = await Reader(Queue(2, None), waiting_at(3)).listen(2)

    assert [(each["position"], each["eta_ms"]) for each in told] == [(3, None), (2, 2000)]


async def test_place_of_an_answer_that_was_started_elsewhere_is_found_out() -> None:
    answer = Answer(waiting_at(0).record, no_entries())

    assert await positions(Queue(2, 1, None), answer, 3) == [2, 1]


async def test_nothing_is_told_before_the_answer_is_queued() -> None:
    reader = Reader(Queue(), waiting_at(3))

    assert await reader.listen(0, after=-1) == []


async def test_progress_of_a_prompt_is_told_on_change() -> None:
    half = Stage(True, "w1", prefill=Prefill(16, 1000, 2300))
    more = Stage(True, "w1", prefill=Prefill(16, 1500, 2300))

    told = await Reader(Queue(Stage(True, "w1"), half, half, more, None), waiting_at(0)).listen(5)

    assert told == [
        {
            "type": "chatserve:prefill.updated",
            "response_id": "r",
            "cached_tokens": 16,
            "computed_tokens": computed,
            "total_tokens": 2300,
        }
        for computed in (1000, 1500)
    ]


async def test_worker_that_is_silent_is_lost_until_another_has_the_request() -> None:
    owned, back, taken = Stage(True, "w0"), Stage(True, place=Place(0, None)), Stage(True, "w1")

    told = await Reader(Queue(owned, back, taken, None), waiting_at(0)).listen(4)

    lost = {"type": "chatserve:worker.lost", "response_id": "r", "num_workers": 1}
    assert told == [lost]


async def test_worker_that_is_replaced_is_told_once_there_is_another() -> None:
    models = Models(names=[])
    reader = Reader(Queue(Stage(True, "w0"), StoreError("away"), None), waiting_at(0), models)

    told = await reader.listen(1)
    models.names = ["w1"]
    reader = Reader(Queue(Stage(True, "w0"), None), waiting_at(0), models)
    told = [*told, *await reader.listen(2)]

    assert [each["num_workers"] for each in told] == [0, 1]


async def test_worker_whose_first_heartbeat_is_unread_is_not_lost() -> None:
    models = Models(names=[], arriving=["w1"])

    assert await Reader(Queue(Stage(True, "w1"), None), waiting_at(0), models).listen(2) == []


async def test_answer_that_brings_events_is_not_looked_at() -> None:
    queue = Queue()
    looks = Updates(queue, Models())  # type: ignore[arg-type]
    reader = Reader(queue, waiting_at(0))
    with looks.telling(waiting_at(0), QUEUED_NUMBER, reader.send) as hear:
        for _ in range(30):
            hear({"type": "response.output_text.delta"})
            await asyncio.sleep(0.005)

    assert queue.asked == []


async def test_what_was_found_is_dropped_if_an_event_came_meanwhile() -> None:
    is_asked, go_on = asyncio.Event(), asyncio.Event()

    class SlowQueue(Queue):
        async def stages(self, request_ids: Sequence[RequestId]) -> list[Stage | None]:
            is_asked.set()
            await go_on.wait()
            return [Stage(True, "w0") for _ in request_ids]

    queue = SlowQueue()
    reader = Reader(queue, waiting_at(0))
    looks = Updates(queue, Models())  # type: ignore[arg-type]
    with looks.telling(waiting_at(0), QUEUED_NUMBER, reader.send) as hear:
        await is_asked.wait()
        hear({"type": "response.output_text.delta"})
        go_on.set()
        await asyncio.sleep(0.01)

    assert reader.updates == []


async def test_all_that_wait_are_looked_for_at_once() -> None:
    queue = Queue(2, 1, None)
    looks = Updates(queue, Models())  # type: ignore[arg-type]
    names = [f"r{number}" for number in range(9)]
    readers = [Reader(queue, waiting_at(3, name)) for name in names]

    async def listen(reader: Reader, name: str) -> list[int]:
        with looks.telling(waiting_at(3, name), QUEUED_NUMBER, reader.send):
            async with asyncio.timeout(10):
                while len(queue.asked) < 3:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.005)
        return [update["position"] for update in reader.updates]

    assert await asyncio.gather(*map(listen, readers, names)) == [[3, 2, 1]] * 9
    assert queue.asked == [names] * 3


async def test_two_updates_are_at_least_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    reader = Reader(Queue(2, 1, None), waiting_at(3))

    await reader.listen(2)

    assert len(reader.times) == 3
    assert all(later - earlier >= 0.99 for earlier, later in pairwise(reader.times))


async def test_looks_to_come_end_with_the_gateway() -> None:
    looks = Updates(Queue(), Models())  # type: ignore[arg-type]
    looking = asyncio.ensure_future(looks.look(RequestId("r")))
    await asyncio.sleep(0)

    await looks.aclose()

    with pytest.raises(asyncio.CancelledError):
        await looking


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


LONG = "a" * 3000
"""A prompt of six steps."""


def progress_of(events: list[Event]) -> list[Event]:
    return [each for each in events if each["type"] == "chatserve:prefill.updated"]


def check_progress(events: list[Event]) -> None:
    """Check that a long prompt was told of: after its start, before its text, ever further on."""
    told = progress_of(events)
    computed = [each["computed_tokens"] for each in told]
    assert computed
    assert computed == sorted(set(computed))
    assert all(0 < each["computed_tokens"] < each["total_tokens"] for each in told)
    assert all("sequence_number" not in each for each in told)
    kinds = kinds_of(events)
    assert kinds.index("response.in_progress") < kinds.index("chatserve:prefill.updated")
    last = len(kinds) - 1 - kinds[::-1].index("chatserve:prefill.updated")
    assert last < kinds.index("response.output_text.delta")


async def test_long_prompt_is_told_of_on_the_socket(store_url: str) -> None:
    async with (
        run_service(store_url, worker=WorkerSettings(step_s=0.2)) as service,
        service.socket() as socket,
    ):
        await socket.create(LONG, max_output_tokens=2, stream_id="lane")
        events = await socket.receive_answer()

    check_progress(events)
    assert {each["stream_id"] for each in progress_of(events)} == {"lane"}


async def streamed(service: Service, **headers: str) -> list[Event]:
    body = {"model": "echo", "input": LONG, "stream": True, "max_output_tokens": 2}
    reply: httpx.Response = await service.http.post("/v1/responses", json=body, headers=headers)
    return [json.loads(data) for data in sse_data(reply.text)]


async def test_long_prompt_is_told_of_in_a_stream_to_who_asks(store_url: str) -> None:
    async with run_service(store_url, worker=WorkerSettings(step_s=0.2)) as service:
        events = await streamed(service, **{"x-chatserve-updates": "1"})

    check_progress(events)


async def test_stream_has_only_numbered_events_unless_it_is_asked_for_more(store_url: str) -> None:
    """The `openai` package compares the number of every event."""
    async with run_service(store_url, worker=WorkerSettings(step_s=0.2)) as service:
        events = await streamed(service)

    assert [each["sequence_number"] for each in events] == list(range(len(events)))


async def test_reader_is_told_of_a_lost_worker_until_the_answer_goes_on(store_url: str) -> None:
    silent = WorkerSettings(times=WorkerTimes(beat_s=60, listen_ms=200))  # but for its first beat
    async with (
        run_service(store_url, worker=silent) as service,
        service.socket() as socket,
    ):
        service.model.hold()
        service.model.allow(3)
        await socket.create("abcdefgh")
        await socket.receive_texts(3)
        await service.store.workers.remove("worker-1")

        [*_, lost] = await socket.receive_until("chatserve:worker.lost")
        service.model.release()
        rest = await socket.receive_answer()

    assert lost["response_id"] == rest[-1]["response"]["id"]
    assert kinds_of(rest)[0] == "response.output_text.delta"
    assert kinds_of(rest)[-1] == "response.completed"
