"""The same events under the same numbers, on every transport and from every cut."""

import random

import pytest
from gateway.gateway_helpers import Event, Service, kinds_of, run_service, text_of
from gateway.responses_helpers import PATH, check_official, create, follow, resume, stream

from chatserve.engine.api import RequestId
from chatserve.store import keys
from chatserve.store.connection import Store

ORDER = [
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


async def on_socket(service: Service, text: str, **members: object) -> list[Event]:
    async with service.socket() as socket:
        await socket.create(text, **members)
        return await socket.receive_answer()


async def drop_log(store: Store, response_id: str) -> None:
    """Let time pass until a log is gone and its response is not."""
    partition = store.partitions.of_id(response_id)
    await store.commands.call("DEL", partition.key(keys.LOG + response_id))


@pytest.mark.parametrize("answer", [on_socket, stream])
async def test_events_come_in_their_order_and_are_official(
    service: Service, answer: object
) -> None:
    events: list[Event] = await answer(service, "Grüße, 世界")  # type: ignore[operator]

    check_official(events)
    assert list(dict.fromkeys(kinds_of(events))) == ORDER
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


async def test_whole_conversation_is_official_on_every_transport(service: Service) -> None:
    conversation = (await service.http.post("/v1/conversations", json={})).json()["id"]
    turns = [
        await on_socket(service, "One", conversation=conversation, instructions="Be brief."),
        await stream(service, "Two", conversation=conversation),
        await on_socket(service, "Three", conversation=conversation, max_output_tokens=2),
    ]

    for events in turns:
        response_id = events[0]["response"]["id"]
        check_official(events)
        assert await follow(service, response_id) == events
        assert await resume(service, response_id) == events


async def test_answer_cut_short_is_official_on_every_transport(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello")
        service.model.allow(2)
        events = await socket.receive_texts(2)
        await socket.send("response.cancel")
        events += await socket.receive_answer()
    response_id = events[0]["response"]["id"]

    check_official(events)
    assert await follow(service, response_id) == events
    assert await resume(service, response_id) == events


async def test_every_cut_is_continued_by_exactly_the_rest(service: Service) -> None:
    events = await stream(service, "A cut may come anywhere.")
    response_id = events[0]["response"]["id"]
    cuts = range(-1, len(events) - 1)

    for cut in random.Random(5).sample(cuts, 6):
        assert await follow(service, response_id, cut) == events[cut + 1 :]
        assert await resume(service, response_id, cut) == events[cut + 1 :]
    for cut in cuts:
        assert await follow(service, response_id, cut) == events[cut + 1 :]


async def test_stream_after_the_last_event_repeats_it(service: Service) -> None:
    events = await stream(service, "Hello")

    assert await follow(service, events[0]["response"]["id"], len(events) - 1) == [events[-1]]


async def test_answer_goes_on_over_another_gateway_and_transport(store_url: str) -> None:
    async with run_service(store_url) as one, run_service(store_url) as two:
        for service in (one, two):
            service.model.hold()
        async with one.socket() as socket:
            await socket.create("Hello", background=True)
            seen = await socket.receive_until("response.queued")
        for service in (one, two):
            service.model.release()

        rest = await follow(two, seen[0]["response"]["id"], seen[-1]["sequence_number"])
        replayed = await follow(one, seen[0]["response"]["id"])

    assert seen + rest == replayed
    assert text_of(rest) == "Hello"


async def test_object_alone_gives_a_snapshot_and_the_terminal_event(service: Service) -> None:
    events = await stream(service, "Hello")
    response_id = events[0]["response"]["id"]
    await drop_log(service.store, response_id)

    for gap, terminal in [
        await follow(service, response_id, 3),
        await resume(service, response_id, 3),
    ]:
        assert (gap["type"], gap["from"], gap["snapshot"]) == ("chatserve:response.gap", 4, "Hello")
        assert terminal["response"] == events[-1]["response"]
        check_official([terminal])


async def test_answer_without_text_has_no_item_in_its_snapshot_either(service: Service) -> None:
    service.model.hold()
    response = await create(service, "Hello", background=True)
    cancelled = (await service.http.post(f"{PATH}/{response['id']}/cancel")).json()
    await drop_log(service.store, response["id"])

    *_, terminal = await follow(service, response["id"])

    assert terminal["response"] == cancelled
    assert cancelled["output"] == []


async def test_nothing_left_is_not_found_and_nothing_is_generated(service: Service) -> None:
    response = await create(service, "Hello")
    await service.store.responses.delete(RequestId(response["id"]))

    reply = await service.http.get(f"{PATH}/{response['id']}?stream=true")

    assert reply.status_code == 404
    assert await service.store.queue.depth("echo") == 0
    assert await service.store.responses.get(RequestId(response["id"])) is None
