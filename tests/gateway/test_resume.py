"""Coming back to an answer: replay, tail, snapshot, and never a second generation."""

import json

import pytest
from gateway.gateway_helpers import (
    Event,
    Service,
    chat,
    kinds_of,
    outcome_of,
    response_ids,
    run_service,
    sse_data,
    text_of,
)

from chatserve.engine.api import RequestId
from chatserve.store import keys


async def answer(service: Service, text: str) -> list[Event]:
    """Generate an answer and return its events."""
    async with service.socket() as socket:
        await socket.create(text)
        return await socket.receive_answer()


async def resume(service: Service, response_id: str, after: int) -> list[Event]:
    async with service.socket() as socket:
        await socket.send(
            "chatserve:response.resume", response_id=response_id, starting_after=after
        )
        return await socket.receive_answer()


async def test_replay_of_an_ended_answer_repeats_every_event(service: Service) -> None:
    events = await answer(service, "Hello")

    replayed = await resume(service, events[0]["response"]["id"], -1)

    assert replayed == events


async def test_replay_starts_after_any_event(service: Service) -> None:
    events = await answer(service, "Hello")
    response_id = events[0]["response"]["id"]

    for number in range(len(events) - 1):
        assert await resume(service, response_id, number) == events[number + 1 :]


@pytest.mark.parametrize("beyond", [0, 1, 999_999])
async def test_whoever_has_every_event_gets_the_last_one_again(
    service: Service, beyond: int
) -> None:
    """Over a socket nothing came at all, and its client waited for ever."""
    events = await answer(service, "Hello")
    response_id, after = events[0]["response"]["id"], events[-1]["sequence_number"] + beyond

    with_log = await resume(service, response_id, after)
    path = f"/v1/responses/{response_id}?stream=true&starting_after={after}"
    over_http = sse_data((await service.http.get(path)).text)
    await service.store.commands.call("DEL", keys.FIRST.key(keys.LOG + response_id))
    without_log = await resume(service, response_id, after)

    assert with_log == without_log == [json.loads(each) for each in over_http]
    *before, last = with_log
    assert last == events[-1]
    # A number that no event has must be one that the store has lost.
    assert [event["snapshot"] for event in before] == (["Hello"] if beyond else [])


async def test_reader_that_drops_at_any_moment_misses_and_repeats_nothing(
    service: Service,
) -> None:
    service.model.hold()
    received: list[Event] = []
    async with service.socket() as socket:
        await socket.create("Hello, world")
        service.model.allow(3)
        received += await socket.receive_texts(3)
    for _ in range(3):
        async with service.socket() as socket:
            await socket.send(
                "chatserve:response.resume",
                response_id=received[0]["response"]["id"],
                starting_after=received[-1]["sequence_number"],
            )
            service.model.allow(3)
            received += await socket.receive_texts(3)
    service.model.release()
    received += await resume(
        service, received[0]["response"]["id"], received[-1]["sequence_number"]
    )

    assert [event["sequence_number"] for event in received] == list(range(len(received)))
    assert text_of(received) == "Hello, world"


async def test_resume_right_after_the_create_replays_everything(service: Service) -> None:
    service.model.hold()
    async with service.socket() as creator, service.socket() as second:
        await creator.create("Hello")
        created = await creator.receive()
        await second.send(
            "chatserve:response.resume",
            response_id=created["response"]["id"],
            stream_id="tail",
        )
        service.model.release()

        first_events = [created, *await creator.receive_answer()]
        second_events = await second.receive_answer()

    assert all(event.pop("stream_id") == "tail" for event in second_events)
    assert second_events == first_events


async def test_many_readers_see_the_same_events(service: Service) -> None:
    service.model.hold()
    async with service.socket() as creator, service.socket() as tails:
        await creator.create("Hello")
        created = await creator.receive()
        for name in ("one", "two", "three"):
            await tails.send(
                "chatserve:response.resume",
                response_id=created["response"]["id"],
                stream_id=name,
            )
        service.model.release()
        events = [created, *await creator.receive_answer()]
        received = [event for _ in range(3) for event in await tails.receive_answer()]

    for name in ("one", "two", "three"):
        of_lane = [event for event in received if event["stream_id"] == name]
        assert text_of(of_lane) == text_of(events)
        assert kinds_of(of_lane) == kinds_of(events)


async def test_unknown_response_is_not_found_and_nothing_is_generated(service: Service) -> None:
    events = await resume(service, "resp_unknown", -1)

    assert events[0]["error"]["code"] == "response_not_found"
    assert await response_ids(service.store) == set()


async def test_unstored_response_is_only_its_own_connections(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("Hello", store=False)
        events = await socket.receive_answer()
        response_id = events[0]["response"]["id"]
        await socket.send("chatserve:response.resume", response_id=response_id)
        own = await socket.receive_answer()

    assert own == events
    foreign = await resume(service, response_id, -1)
    assert foreign[0]["error"]["code"] == "response_not_found"


async def test_completion_over_http_cannot_be_read_on_a_socket(service: Service) -> None:
    reply = await service.http.post("/v1/chat/completions", json=chat("Hello"))

    events = await resume(service, reply.json()["id"], -1)

    assert events[0]["error"]["code"] == "response_not_found"


async def test_log_that_has_expired_gives_a_snapshot_and_the_terminal_event(
    service: Service,
) -> None:
    events = await answer(service, "Hello")
    response_id = events[0]["response"]["id"]
    await service.store.commands.call("DEL", keys.FIRST.key(keys.LOG + response_id))

    gap, terminal = await resume(service, response_id, 3)

    assert (gap["type"], gap["from"], gap["snapshot"]) == ("chatserve:response.gap", 4, "Hello")
    assert terminal["sequence_number"] == gap["to"] + 1
    assert terminal["response"] == events[-1]["response"]


async def test_response_that_has_expired_is_not_found(service: Service) -> None:
    events = await answer(service, "Hello")
    response_id = events[0]["response"]["id"]
    await service.store.responses.delete(RequestId(response_id))

    resumed = await resume(service, response_id, -1)

    assert resumed[0]["error"]["code"] == "response_not_found"


async def test_log_lost_in_the_middle_is_an_error_and_not_a_hang(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", background=True)
        created = await socket.receive()
    response_id = created["response"]["id"]
    await service.store.commands.call("DEL", keys.FIRST.key(keys.LOG + response_id))

    events = await resume(service, response_id, -1)

    assert events[0]["error"]["code"] == "response_not_found"


async def test_answer_survives_its_gateway(store_url: str) -> None:
    async with run_service(store_url) as service:
        events = await answer(service, "Hello")
    async with run_service(store_url) as service:
        replayed = await resume(service, events[0]["response"]["id"], -1)

    assert replayed == events


async def test_answer_started_here_is_read_and_stopped_through_another_gateway(
    store_url: str,
) -> None:
    async with run_service(store_url) as first, run_service(store_url) as second:
        first.model.hold()
        second.model.hold()
        async with first.socket() as reader, second.socket() as other:
            await reader.create("Hello")
            created = await reader.receive()
            response_id = created["response"]["id"]
            await other.send("chatserve:response.resume", response_id=response_id)
            await other.receive_until("response.queued")
            await other.send("response.cancel", response_id=response_id)

            events = await reader.receive_answer()
            tail = await other.receive_answer()

        outcome = await outcome_of(first.store, response_id)
        first.model.release()
        second.model.release()

    assert events[-1]["type"] == tail[-1]["type"] == "response.incomplete"
    assert outcome.finish_reason == "abort"
