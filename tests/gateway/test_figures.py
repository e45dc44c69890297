"""The figures of an answer are taken once, and are the same wherever they are read."""

from typing import Any

from engine.worker_helpers import RunningWorker, end_leases
from gateway.continue_helpers import go_on, items, new_conversation
from gateway.fake_model import FakeModel
from gateway.gateway_helpers import Event, Service, Socket, WorkerSettings, run_service

from chatserve.engine.worker import WorkerTimes

SILENT = WorkerSettings(times=WorkerTimes(beat_s=60, reap_s=60, listen_ms=200))
TIMINGS = "chatserve:timings"


def told_by(events: list[Event]) -> dict[str, Any]:
    """Return the figures that events name before the last one."""
    begun = next(each for each in events if each["type"] == "response.in_progress")
    first = next(each for each in events if each["type"] == "response.output_text.delta")
    return {
        "queue_ms": begun["chatserve:queue_ms"],
        "ttft_ms": first["chatserve:ttft_ms"],
        "cached_tokens": begun["chatserve:cached_tokens"],
    }


def figures_of(holder: Event, usage: str = "usage") -> dict[str, Any]:
    """Return the same figures of a response object, or of an item."""
    timings = holder[TIMINGS]
    return {
        "queue_ms": timings["queue_ms"],
        "ttft_ms": timings["ttft_ms"],
        "cached_tokens": holder[usage]["input_tokens_details"]["cached_tokens"],
    }


async def check_everywhere(
    service: Service, conversation_id: str, events: list[Event]
) -> dict[str, Any]:
    """Check that events, object, item and resume agree, and return the timings."""
    response = events[-1]["response"]
    path = f"/v1/responses/{response['id']}"
    stored = (await service.http.get(path)).json()
    item = (await items(service, conversation_id))[-1]
    async with service.socket() as socket:
        await socket.send(
            "chatserve:response.resume", response_id=response["id"], starting_after=-1
        )
        replayed = await socket.receive_answer()

    assert figures_of(response) == told_by(events) == told_by(replayed)
    assert stored[TIMINGS] == item[TIMINGS] == response[TIMINGS]
    assert figures_of(stored) == figures_of(item, "chatserve:usage") == figures_of(response)
    timings: dict[str, Any] = response[TIMINGS]
    return timings


async def begin(socket: Socket, service: Service, conversation_id: str) -> list[Event]:
    """Have an answer begin, and stop after three of its letters."""
    service.model.hold()
    service.model.allow(3)
    await socket.create("abcdefgh", conversation=conversation_id)
    return await socket.receive_texts(3)


async def test_figures_are_the_same_live_stored_and_replayed(store_url: str) -> None:
    async with run_service(store_url) as service, service.socket() as socket:
        conversation_id = await new_conversation(service)
        await socket.create("abcdefgh", conversation=conversation_id)
        events = await socket.receive_answer()

        timings = await check_everywhere(service, conversation_id, events)

    assert timings["ttft_ms"] >= timings["queue_ms"]
    assert timings["tok_s"] > 0


async def test_figures_are_those_of_the_first_worker_after_a_take_over(store_url: str) -> None:
    """They used to be the last one's: half of the answer was time in the queue."""
    async with run_service(store_url, worker=SILENT) as service, service.socket() as socket:
        conversation_id = await new_conversation(service)
        events = await begin(socket, service, conversation_id)
        second = RunningWorker(service.store, "second", FakeModel().next_token)
        await end_leases(service.store)
        events += await socket.receive_answer()

        timings = await check_everywhere(service, conversation_id, events)
        second.stop.set()
        await second.task

    text = "".join(each.get("delta", "") for each in events)
    assert text == "abcdefgh"
    assert timings["ttft_ms"] >= timings["queue_ms"] + timings["prefill_ms"] - 0.01


async def test_continued_answer_has_figures_of_its_own(store_url: str) -> None:
    async with run_service(store_url) as service, service.socket() as socket:
        conversation_id = await new_conversation(service)
        await socket.create("abcdefgh", conversation=conversation_id, max_output_tokens=3)
        cut = (await socket.receive_answer())[-1]["response"]

        continued = await go_on(service, conversation_id)
        *_, first, second = await items(service, conversation_id)

    assert continued["usage"]["output_tokens"] == 6
    assert (first[TIMINGS], second[TIMINGS]) == (cut[TIMINGS], continued[TIMINGS])
    assert first["chatserve:usage"] == cut["usage"]
