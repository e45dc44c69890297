"""Stopping an answer, at every stage and from wherever."""

import time
from statistics import median

from gateway.gateway_helpers import (
    Service,
    WorkerSettings,
    kinds_of,
    outcome_of,
    run_service,
    text_of,
)

from chatserve.engine.api import FinishReason
from chatserve.gateway.connection_limits import ConnectionLimits

MAX_CANCEL_MS = 100.0


async def test_cancel_in_the_middle_keeps_the_text_and_frees_the_engine(service: Service) -> None:
    service.model.hold()
    service.model.allow(10)
    async with service.socket() as socket:
        await socket.create("x" * 2000)
        events = await socket.receive_texts(10)
        await socket.send("response.cancel", response_id=events[0]["response"]["id"])

        events += await socket.receive_answer()
        service.model.release()
        await service.wait_until_idle()

    response = events[-1]["response"]
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "chatserve:cancelled"}
    assert response["output"][0]["content"][0]["text"] == text_of(events) == "x" * 10


async def test_cancel_before_the_first_token_ends_the_answer(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello")
        await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.send("response.cancel")

        events = await socket.receive_answer()

    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["output"] == []


async def test_cancel_in_the_queue_ends_the_answer(store_url: str) -> None:
    worker = WorkerSettings(max_claims=1)
    async with run_service(store_url, worker=worker) as service, service.socket() as socket:
        service.model.hold()
        await socket.create("a", stream_id="running")
        await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.create("b", stream_id="waiting")
        await socket.receive_until("response.queued")
        await socket.send("response.cancel", stream_id="waiting")

        events = await socket.receive_answer()

    assert events[-1]["stream_id"] == "waiting"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "chatserve:cancelled"}


async def test_cancel_right_behind_its_create_is_not_lost(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello")
        await socket.send("response.cancel")

        events = await socket.receive_answer()

    assert events[-1]["type"] == "response.incomplete"


async def test_cancel_ends_the_running_create_of_a_lane_and_the_next_one_runs(
    service: Service,
) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("first", stream_id="lane")
        await socket.create("second", stream_id="lane")
        await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.send("response.cancel", stream_id="lane")
        first = await socket.receive_answer()
        service.model.release()

        second = await socket.receive_answer()

    assert first[-1]["type"] == "response.incomplete"
    assert text_of(second) == "second"


async def test_cancel_works_through_another_connection(service: Service) -> None:
    service.model.hold()
    async with service.socket() as reader, service.socket() as other:
        await reader.create("Hello")
        events = await reader.receive_until("response.queued")
        await service.wait_until_held()
        await other.send("response.cancel", response_id=events[0]["response"]["id"])

        events = await reader.receive_answer()

    assert events[-1]["type"] == "response.incomplete"


async def test_cancel_of_an_ended_answer_changes_nothing(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("Hello")
        events = await socket.receive_answer()
        response_id = events[-1]["response"]["id"]
        await socket.send("response.cancel", response_id=response_id)
        await socket.send("chatserve:ping", t=1)

        after = await socket.receive_until("chatserve:pong")

    assert kinds_of(after) == ["chatserve:pong"]
    outcome = await outcome_of(service.store, response_id)
    assert outcome.finish_reason is FinishReason.STOP


async def test_cancel_of_an_unknown_response_is_an_error(service: Service) -> None:
    async with service.socket() as socket:
        await socket.send("response.cancel", response_id="resp_unknown", event_id="e1")

        error = await socket.receive()

    assert (error["status"], error["error"]["code"]) == (404, "response_not_found")
    assert error["event_id"] == "e1"


async def test_cancel_of_an_idle_lane_is_an_error(service: Service) -> None:
    async with service.socket() as socket:
        await socket.send("response.cancel", stream_id="idle")

        error = await socket.receive()

    assert (error["stream_id"], error["error"]["code"]) == ("idle", "response_not_found")


async def test_create_that_waits_in_its_lane_is_cancelled_by_the_id_of_its_event(
    service: Service,
) -> None:
    """It has told no response id yet, and the lane is busy with another one."""
    service.model.hold()
    async with service.socket() as socket:
        for event_id, text in {"a": "first", "b": "x" * 2000, "c": "third"}.items():
            await socket.create(text, stream_id="lane", event_id=event_id)
        await service.wait_until_held()
        for _ in range(2):
            await socket.send("response.cancel", **{"chatserve:create_event_id": "b"})
        await socket.send("chatserve:ping", t=1)
        events = await socket.receive_until("chatserve:pong")
        service.model.allow(len("first") + 1)  # and its end

        answers = [await socket.receive_answer() for _ in range(2)]
        service.model.release()
        answers.append(await socket.receive_answer())

    assert text_of([*events, *answers[0]]) == "first"
    assert answers[1][-1]["response"]["incomplete_details"] == {"reason": "chatserve:cancelled"}
    assert text_of(answers[2]) == "third"


async def test_create_that_runs_is_cancelled_by_the_id_of_its_event(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", stream_id="lane", event_id="first")
        await service.wait_until_held()
        await socket.send("response.cancel", **{"chatserve:create_event_id": "first"})

        events = await socket.receive_answer()

    assert events[-1]["response"]["incomplete_details"] == {"reason": "chatserve:cancelled"}


async def test_cancel_of_a_create_that_never_was_is_an_error(service: Service) -> None:
    async with service.socket() as socket:
        await socket.send("response.cancel", **{"chatserve:create_event_id": "none"})

        error = await socket.receive()

    assert (error["status"], error["error"]["code"]) == (404, "response_not_found")


async def test_cancels_that_repeat_one_under_way_do_no_harm(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello")
        events = await socket.receive_until("response.queued")
        for _ in range(5):
            await socket.send("response.cancel", response_id=events[0]["response"]["id"])

        events = await socket.receive_answer()

    assert events[-1]["type"] == "response.incomplete"


async def test_cancels_on_their_way_are_limited(store_url: str) -> None:
    limits = ConnectionLimits(max_in_flight=2)
    async with run_service(store_url, limits=limits) as service, service.socket() as socket:
        for number in range(10):
            await socket.send("response.cancel", response_id=f"resp_{number}")

        codes = {(await socket.receive())["error"]["code"] for _ in range(10)}

    assert codes == {"response_not_found", "websocket_queue_full"}


async def test_cancel_is_not_lost_when_its_sender_leaves_at_once(service: Service) -> None:
    """A client that stops an answer and closes the page used to take its cancel with it."""
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", background=True)
        events = await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.send("response.cancel", response_id=events[0]["response"]["id"])

    outcome = await outcome_of(service.store, events[0]["response"]["id"])

    assert outcome.finish_reason is FinishReason.ABORT


async def test_terminal_event_of_a_cancel_does_not_wait_for_the_step(
    service: Service,
) -> None:
    """The engine stands in the middle of a step all the time; the median is a few milliseconds."""
    service.model.hold()
    waits_ms: list[float] = []
    async with service.socket() as socket:
        for _ in range(20):
            await socket.create("Hello")
            await socket.receive_until("response.queued")
            await service.wait_until_held()
            sent_at = time.perf_counter()
            await socket.send("response.cancel")
            events = await socket.receive_answer()
            waits_ms.append(1e3 * (time.perf_counter() - sent_at))
            assert events[-1]["type"] == "response.incomplete"
            assert service.model.is_waiting

    assert median(waits_ms) < MAX_CANCEL_MS
    service.model.release()
    await service.wait_until_idle()


async def test_cancel_of_a_gateway_ends_what_another_one_started(store_url: str) -> None:
    async with run_service(store_url) as one, run_service(store_url) as two:
        for service in (one, two):
            service.model.hold()
        async with one.socket() as socket:
            await socket.create("Hello")
            head = await socket.receive_until("response.queued")
            reply = await two.http.post(f"/v1/responses/{head[0]['response']['id']}/cancel")
            events = await socket.receive_answer()
        for service in (one, two):
            service.model.release()
            await service.wait_until_idle()

    assert events[-1]["response"] == reply.json()
