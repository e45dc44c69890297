"""The WebSocket, read as a transcript: send this, expect that."""

import asyncio

import pytest
from gateway.gateway_helpers import (
    TIMEOUT_S,
    Service,
    WorkerSettings,
    kinds_of,
    response_ids,
    run_service,
    text_of,
)

from chatserve import __version__
from chatserve.gateway.connection_limits import ConnectionLimits


async def test_first_frame_tells_what_a_client_must_know(service: Service) -> None:
    async with service.socket() as socket:
        opened = socket.opened

    assert opened["type"] == "chatserve:connection.opened"
    assert opened["connection_id"].startswith("conn_")
    assert opened["server_version"] == __version__
    assert opened["limits"] == {
        "max_message_bytes": 2**20,
        "max_in_flight": 16,
        "max_lanes": 16,
        "lifetime_ms": 3_600_000,
    }


async def test_create_streams_numbered_events_up_to_the_terminal_one(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("Hello")

        events = await socket.receive_answer()

    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert kinds_of(events)[:5] == [
        "response.created",
        "response.queued",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds_of(events)[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert text_of(events) == "Hello"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello"
    assert events[-1]["response"]["usage"]["output_tokens"] == len("Hello") + 1
    assert events[-1]["response"]["chatserve:timings"]["ttft_ms"] > 0


async def test_response_echoes_the_request_and_names_what_it_ignored(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("Hello", temperature=0.5, metadata={"k": "v"}, colour="red")

        created, *_ = await socket.receive_answer()

    assert created["chatserve:ignored"] == ["colour"]
    assert created["response"]["temperature"] == 0.5
    assert created["response"]["metadata"] == {"k": "v"}
    assert "ignored" not in created["response"]


async def test_max_output_tokens_ends_the_answer_as_incomplete(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("Hello", max_output_tokens=2)

        events = await socket.receive_answer()

    assert text_of(events) == "He"
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


async def test_lanes_run_side_by_side_and_their_events_name_them(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("aa", stream_id="one")
        await socket.create("bb", stream_id="two")
        started = [await socket.receive() for _ in range(4)]
        service.model.release()

        events = started + await socket.receive_answer() + await socket.receive_answer()

    assert {event["stream_id"] for event in started} == {"one", "two"}
    assert text_of([e for e in events if e["stream_id"] == "one"]) == "aa"
    assert text_of([e for e in events if e["stream_id"] == "two"]) == "bb"


async def test_creates_of_one_lane_run_in_order(service: Service) -> None:
    async with service.socket() as socket:
        for text in ("first", "second", "third"):
            await socket.create(text, stream_id="lane")

        answers = [await socket.receive_answer() for _ in range(3)]

    assert [text_of(events) for events in answers] == ["first", "second", "third"]
    assert all(
        [event["sequence_number"] for event in events] == list(range(len(events)))
        for events in answers
    )


async def test_default_lane_has_no_name(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("Hello")

        events = await socket.receive_answer()

    assert not any("stream_id" in event for event in events)


async def test_create_above_the_limit_in_flight_is_refused(store_url: str) -> None:
    limits = ConnectionLimits(max_in_flight=2)
    async with run_service(store_url, limits=limits) as service, service.socket() as socket:
        service.model.hold()
        await socket.create("a", stream_id="one")
        await socket.create("b", stream_id="one")
        await socket.create("c", stream_id="two", event_id="e3")

        *_, refused = await socket.receive_until("error")
        service.model.release()
        answers = [await socket.receive_answer() for _ in range(2)]

    assert (refused["status"], refused["error"]["code"]) == (429, "websocket_queue_full")
    assert (refused["stream_id"], refused["event_id"]) == ("two", "e3")
    assert text_of(answers[-1]) == "b"


async def test_ping_is_answered_while_an_answer_is_generated(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello")
        await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.send("chatserve:ping", t=12.5)

        *_, pong = await socket.receive_until("chatserve:pong")

    assert pong["t"] == 12.5
    assert pong["server_time_ms"] > 0


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "invalid_json"),
        ('{"type": "response.begin"}', "unknown_event"),
        ('{"type": "response.steer", "input": "x", "previous_response_id": "r"}', "unsupported"),
        ('{"type": "response.create", "model": "echo"}', "missing_required_parameter"),
        ('{"type": "response.create", "model": "other", "input": "x"}', "model_not_found"),
        ('{"type": "response.create", "model": "echo", "input": "x", "n": 2}', "unsupported"),
        (
            '{"type": "response.create", "model": "echo", "input": "x", "stop_token_ids": [999]}',
            "invalid_value",
        ),
    ],
)
async def test_bad_frame_gets_an_error_and_the_socket_stays(
    service: Service, frame: str, code: str
) -> None:
    async with service.socket() as socket:
        await socket.connection.send(frame)
        error = await socket.receive()
        await socket.create("Hello")
        events = await socket.receive_answer()

    assert (error["type"], error["error"]["code"]) == ("error", code)
    assert text_of(events) == "Hello"


async def test_prompt_over_the_context_is_refused_with_the_sizes(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("x" * 5000, stream_id="lane")
        error = await socket.receive()

    assert error["error"]["code"] == "context_length_exceeded"
    assert error["stream_id"] == "lane"
    assert "4096" in error["error"]["message"]
    assert await response_ids(service.store) == set()


async def test_place_in_the_queue_is_told_while_waiting(store_url: str) -> None:
    worker = WorkerSettings(max_claims=1)
    async with run_service(store_url, worker=worker) as service, service.socket() as socket:
        service.model.hold()
        await socket.create("a", stream_id="running")
        await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.create("b", stream_id="next")
        await socket.receive_until("response.queued")
        await socket.create("c", stream_id="last")
        *_, update = await socket.receive_until("chatserve:queue.updated")
        service.model.release()
        answers = [await socket.receive_answer() for _ in range(3)]

    assert (update["stream_id"], update["position"]) == ("last", 1)
    assert "sequence_number" not in update
    assert "".join(text_of(events) for events in answers) == "abc"


async def test_full_queue_is_refused_with_a_time_to_retry(store_url: str) -> None:
    worker = WorkerSettings(max_claims=1)
    async with (
        run_service(store_url, worker=worker, max_queue=1) as service,
        service.socket() as socket,
    ):
        service.model.hold()
        await socket.create("a", stream_id="running")
        await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.create("b", stream_id="waiting")
        await socket.receive_until("response.queued")
        await socket.create("c", stream_id="refused")

        *_, error = await socket.receive_until("error")

        assert (error["status"], error["error"]["code"]) == (429, "queue_full")
        seconds = error["error"]["headers"]["retry-after"]
        assert 1 <= int(seconds) <= 120
        assert f"try again in {seconds} s" in error["error"]["message"]


async def test_unstored_answers_go_with_their_connection(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("Hi", store=False)
        response_id = (await socket.receive_answer())[0]["response"]["id"]
        await socket.create("there", store=False, previous_response_id=response_id)
        assert (await socket.receive_answer())[-1]["type"] == "response.completed"
        assert len(await response_ids(service.store)) == 2

    async with asyncio.timeout(TIMEOUT_S):
        while await response_ids(service.store):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
