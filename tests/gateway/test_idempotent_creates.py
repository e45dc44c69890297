"""One create, sent as often as a client likes: one generation."""

import asyncio

from gateway.gateway_helpers import Event, Service, first_response_id, response_ids, run_service
from gateway.responses_helpers import PATH, body, create, events_in

from chatserve.engine.api import RequestId


async def on_socket(service: Service, text: str, event_id: str, **members: object) -> list[Event]:
    async with service.socket() as socket:
        await socket.create(text, event_id=event_id, **members)
        return await socket.receive_answer()


async def test_same_create_on_another_connection_replays(service: Service) -> None:
    first = await on_socket(service, "Hello", "e1")

    second = await on_socket(service, "Hello", "e1")

    assert second == first
    assert len(await response_ids(service.store)) == 1


async def test_same_create_in_another_lane_replays(service: Service) -> None:
    first = await on_socket(service, "Hello", "e1")

    second = await on_socket(service, "Hello", "e1", stream_id="lane")

    assert [{**event, "stream_id": "lane"} for event in first] == second


async def test_same_id_for_another_create_is_refused(service: Service) -> None:
    await on_socket(service, "Hello", "e1")

    (error,) = await on_socket(service, "Good bye", "e1")

    assert (error["status"], error["error"]["code"]) == (409, "duplicate_event_id")
    assert error["event_id"] == "e1"
    assert len(await response_ids(service.store)) == 1


async def test_same_create_over_http_replays(service: Service) -> None:
    headers = {"Idempotency-Key": "e1"}

    replies = [await service.http.post(PATH, json=body("Hello"), headers=headers) for _ in range(2)]
    streamed = await service.http.post(PATH, json=body("Hello", stream=True), headers=headers)

    assert replies[0].json() == replies[1].json()
    assert events_in(streamed.text)[-1]["response"] == replies[0].json()
    assert len(await response_ids(service.store)) == 1


async def test_same_create_over_http_and_on_a_socket_is_one(service: Service) -> None:
    reply = await service.http.post(PATH, json=body("Hello"), headers={"Idempotency-Key": "e1"})

    events = await on_socket(service, "Hello", "e1")

    assert events[-1]["response"] == reply.json()


async def test_same_key_for_another_body_is_refused(service: Service) -> None:
    headers = {"Idempotency-Key": "e1"}
    await service.http.post(PATH, json=body("Hello"), headers=headers)

    reply = await service.http.post(PATH, json=body("Good bye"), headers=headers)

    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (409, "duplicate_event_id")


async def test_key_over_its_length_is_refused(service: Service) -> None:
    reply = await service.http.post(
        PATH, json=body("Hello"), headers={"Idempotency-Key": "k" * 257}
    )

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "Idempotency-Key")


async def test_creates_sent_at_once_over_two_gateways_are_one_answer(store_url: str) -> None:
    async with run_service(store_url) as one, run_service(store_url) as two:
        answers = await asyncio.gather(
            *(on_socket(service, "Hello", "e1") for service in (one, two, one, two))
        )

    assert all(answer == answers[0] for answer in answers)


async def test_of_different_creates_sent_at_once_one_is_answered(service: Service) -> None:
    async with service.socket() as socket:
        for text in ("Hello", "Good bye"):
            await socket.create(text, event_id="e1", stream_id=text[:4])
        ends = [await socket.receive_answer() for _ in range(2)]

    last = {events[-1]["type"] for events in ends}
    assert last == {"response.completed", "error"}
    assert len(await response_ids(service.store)) == 1


async def test_create_that_is_repeated_while_it_runs_follows_it(service: Service) -> None:
    service.model.hold()
    async with service.socket() as first, service.socket() as second:
        await first.create("Hello", event_id="e1")
        head = await first.receive_until("response.queued")
        await second.create("Hello", event_id="e1")
        service.model.release()

        assert await second.receive_answer() == head + await first.receive_answer()


async def test_unstored_create_repeats_on_its_connection_only(service: Service) -> None:
    async with service.socket() as socket:
        answers = []
        for _ in range(2):
            await socket.create("Hello", event_id="e1", store=False)
            answers.append(await socket.receive_answer())

    elsewhere = await on_socket(service, "Hello", "e1", store=False)

    assert answers[0] == answers[1]
    assert elsewhere[0]["response"]["id"] != answers[0][0]["response"]["id"]


async def test_create_without_an_id_is_a_new_one_each_time(service: Service) -> None:
    first = await create(service, "Hello")

    second = await create(service, "Hello")

    assert first["id"] != second["id"]


async def test_answer_that_was_left_is_what_a_repetition_gets(service: Service) -> None:
    service.model.hold()
    headers = {"Idempotency-Key": "e1"}
    request = body("Hello", stream=True)
    async with service.http.stream("POST", PATH, json=request, headers=headers) as reply:
        await anext(reply.aiter_lines())
    await service.wait_until_unread()
    response_id = await first_response_id(service.store)
    service.model.release()

    again = await service.http.post(PATH, json=request, headers=headers)

    assert events_in(again.text)[0]["response"]["id"] == response_id
    assert await response_ids(service.store) == {RequestId(response_id)}
