"""The Responses protocol over HTTP: create, read, cancel, delete, input items."""

import asyncio
from typing import Any

import pytest
from gateway.gateway_helpers import (
    Service,
    first_response_id,
    kinds_of,
    outcome_of,
    response_ids,
    text_of,
)
from gateway.responses_helpers import PATH, body, check_official, create, events_in, follow, stream

from chatserve.engine.api import FinishReason
from chatserve.gateway import responses_http


def output_text(response: dict[str, Any]) -> str:
    return "".join(part["text"] for item in response["output"] for part in item["content"])


async def test_whole_answer_is_the_response_object(service: Service) -> None:
    reply = await service.http.post(PATH, json=body("Hello", metadata={"a": "b"}, colour="red"))

    response = reply.json()
    assert (response["object"], response["status"]) == ("response", "completed")
    assert output_text(response) == "Hello"
    assert response["metadata"] == {"a": "b"}
    assert response["usage"]["output_tokens"] == len("Hello") + 1
    assert reply.headers["x-request-id"] == response["id"]
    assert reply.headers["x-chatserve-ignored"] == "colour"


async def test_stream_has_every_event_and_ends_with_the_terminal_one(service: Service) -> None:
    reply = await service.http.post(PATH, json=body("Hello", stream=True, colour="red"))

    events = events_in(reply.text)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-chatserve-ignored"] == "colour"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert text_of(events) == "Hello"
    assert events[0]["chatserve:ignored"] == ["colour"]
    assert events[-1]["type"] == "response.completed"
    assert "[DONE]" not in reply.text


async def test_stream_survives_separators_that_some_readers_take_for_line_ends(
    service: Service,
) -> None:
    events = await stream(service, "a\u2028b\u2029c\u0085d")

    assert text_of(events) == "a\u2028b\u2029c\u0085d"


async def test_response_is_read_after_its_end(service: Service) -> None:
    created = await create(service, "Hello")

    reply = await service.http.get(f"{PATH}/{created['id']}")

    assert reply.json() == created


async def test_response_in_flight_is_read_with_its_text_so_far(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello")
        created = await socket.receive()
        queued = (await service.http.get(f"{PATH}/{created['response']['id']}")).json()
        service.model.allow(3)
        await socket.receive_texts(3)

        running = (await service.http.get(f"{PATH}/{created['response']['id']}")).json()

    assert queued["status"] in ("queued", "in_progress")
    assert queued["output"] == []
    assert running["status"] == "in_progress"
    assert output_text(running) == "Hel"


async def test_background_answers_at_once_and_runs_without_a_reader(service: Service) -> None:
    service.model.hold()

    response = await create(service, "Hello", background=True)

    assert (response["status"], response["background"]) == ("queued", True)
    service.model.release()
    outcome = await outcome_of(service.store, response["id"])
    assert outcome.finish_reason is FinishReason.STOP
    read = (await service.http.get(f"{PATH}/{response['id']}")).json()
    assert output_text(read) == "Hello"


async def test_background_stream_that_is_left_runs_to_its_end(service: Service) -> None:
    service.model.hold()
    request = body("Hello", background=True, stream=True)
    async with service.http.stream("POST", PATH, json=request) as reply:
        await anext(reply.aiter_lines())
    response_id = await first_response_id(service.store)
    service.model.release()

    outcome = await outcome_of(service.store, response_id)

    assert outcome.finish_reason is FinishReason.STOP


async def test_background_that_is_not_stored_is_refused(service: Service) -> None:
    reply = await service.http.post(PATH, json=body("Hello", background=True, store=False))

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "background")


async def test_stream_that_is_left_is_aborted(service: Service) -> None:
    service.model.hold()
    async with service.http.stream("POST", PATH, json=body("Hello", stream=True)) as reply:
        await anext(reply.aiter_lines())

    outcome = await outcome_of(service.store, await first_response_id(service.store))

    assert outcome.finish_reason is FinishReason.ABORT
    service.model.release()
    await service.wait_until_idle()


async def test_whole_answer_that_is_left_is_aborted(service: Service) -> None:
    service.model.hold()
    asking = service.spawn(service.http.post(PATH, json=body("Hello")))
    response_id = await first_response_id(service.store)
    await service.wait_until_held()

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    outcome = await outcome_of(service.store, response_id)
    assert outcome.finish_reason is FinishReason.ABORT


async def test_turn_of_a_conversation_that_is_left_runs_to_its_end(service: Service) -> None:
    conversation = (await service.http.post("/v1/conversations", json={})).json()
    service.model.hold()
    request = body("Hello", stream=True, conversation=conversation["id"])
    async with service.http.stream("POST", PATH, json=request) as reply:
        await anext(reply.aiter_lines())
    service.model.release()

    outcome = await outcome_of(service.store, await first_response_id(service.store))

    assert outcome.finish_reason is FinishReason.STOP


async def test_reader_of_a_stream_may_leave_while_another_stays(service: Service) -> None:
    service.model.hold()
    async with service.http.stream("POST", PATH, json=body("Hello", stream=True)) as first:
        lines = first.aiter_lines()  # kept, since httpx closes a stream with its iterator
        await anext(lines)
        response_id = await first_response_id(service.store)
        path = f"{PATH}/{response_id}?stream=true"
        async with service.http.stream("GET", path) as second:
            await anext(second.aiter_lines())
        await service.wait_until_read_by(1)
        service.model.release()

        outcome = await outcome_of(service.store, response_id)

    assert outcome.finish_reason is FinishReason.STOP


async def test_cancel_ends_an_answer_and_returns_it(service: Service) -> None:
    service.model.hold()
    response = await create(service, "Hello", background=True)
    service.model.allow(2)
    async with service.http.stream("GET", f"{PATH}/{response['id']}?stream=true") as reading:
        lines = reading.aiter_lines()
        while "delta" not in await anext(lines):
            pass

        reply = await service.http.post(f"{PATH}/{response['id']}/cancel")

    cancelled = reply.json()
    assert cancelled["status"] == "incomplete"
    assert cancelled["incomplete_details"] == {"reason": "chatserve:cancelled"}
    assert output_text(cancelled).startswith("H")
    again = await service.http.post(f"{PATH}/{response['id']}/cancel")
    assert (again.status_code, again.json()) == (200, cancelled)


async def test_cancel_of_an_answer_that_has_ended_leaves_it_as_it_is(service: Service) -> None:
    response = await create(service, "Hello")

    reply = await service.http.post(f"{PATH}/{response['id']}/cancel")

    assert (reply.status_code, reply.json()) == (200, response)


async def test_answer_that_fails_is_a_status_or_an_event(service: Service) -> None:
    service.model.hold()

    whole = await service.http.post(PATH, json=body("Hello", timeout=0.05))
    events = await stream(service, "Hello", timeout=0.05)

    error = whole.json()["error"]
    assert (whole.status_code, error["type"], error["code"]) == (
        504,
        "server_error",
        "deadline_exceeded",
    )
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["chatserve:code"] == "deadline_exceeded"
    check_official(events)
    kept = await service.http.get(f"{PATH}/{whole.headers['x-request-id']}")
    assert kept.json()["status"] == "failed"


async def test_deleted_response_is_gone_everywhere(service: Service) -> None:
    response = await create(service, "Hello")

    reply = await service.http.delete(f"{PATH}/{response['id']}")

    assert reply.json() == {"id": response["id"], "object": "response.deleted", "deleted": True}
    for method, path in [
        ("GET", response["id"]),
        ("GET", f"{response['id']}?stream=true"),
        ("GET", f"{response['id']}/input_items"),
        ("POST", f"{response['id']}/cancel"),
        ("DELETE", response["id"]),
    ]:
        missing = await service.http.request(method, f"{PATH}/{path}")
        error = missing.json()["error"]
        assert (missing.status_code, error["type"], error["code"]) == (
            404,
            "not_found",
            "response_not_found",
        )
    follow_up = await service.http.post(
        PATH, json=body("Again", previous_response_id=response["id"])
    )
    assert follow_up.json()["error"]["code"] == "previous_response_not_found"


async def test_delete_of_a_running_answer_cancels_it(service: Service) -> None:
    service.model.hold()
    response = await create(service, "Hello", background=True)
    await service.wait_until_held()
    async with service.http.stream("GET", f"{PATH}/{response['id']}?stream=true") as reading:
        lines = reading.aiter_lines()
        await anext(lines)
        await service.http.delete(f"{PATH}/{response['id']}")

        rest = [line async for line in lines]

    assert any(line == "event: response.incomplete" for line in rest)
    service.model.release()
    await service.wait_until_idle()
    assert await response_ids(service.store) == set()


async def test_unstored_response_cannot_be_read(service: Service) -> None:
    response = await create(service, "Hello", store=False)

    reply = await service.http.get(f"{PATH}/{response['id']}")

    assert output_text(response) == "Hello"
    assert reply.status_code == 404
    follow_up = await service.http.post(
        PATH, json=body("Again", previous_response_id=response["id"])
    )
    assert follow_up.json()["error"]["code"] == "previous_response_not_found"


async def test_lineage_forks(service: Service) -> None:
    first = await create(service, "One")

    left = await create(service, "Left", previous_response_id=first["id"])
    right = await create(service, "Right", previous_response_id=first["id"])

    for response, last in ((left, "Left"), (right, "Right")):
        items = (await service.http.get(f"{PATH}/{response['id']}/input_items?order=asc")).json()
        texts = [item["content"][0]["text"] for item in items["data"]]
        assert texts == ["One", "One", last]
        assert [item["role"] for item in items["data"]] == ["user", "assistant", "user"]


async def test_input_items_come_in_pages_newest_first(service: Service) -> None:
    messages = [{"role": "user", "content": text} for text in "abcde"]
    reply = await service.http.post(PATH, json={"model": "echo", "input": messages})
    path = f"{PATH}/{reply.json()['id']}/input_items"

    first = (await service.http.get(path, params={"limit": "3"})).json()
    second = (await service.http.get(path, params={"limit": "3", "after": first["last_id"]})).json()

    pages = [[item["content"][0]["text"] for item in page["data"]] for page in (first, second)]
    assert pages == [["e", "d", "c"], ["b", "a"]]
    assert (first["has_more"], second["has_more"]) == (True, False)


async def test_input_items_of_a_turn_are_its_branch_up_to_it(service: Service) -> None:
    conversation = (await service.http.post("/v1/conversations", json={})).json()
    await create(service, "One", conversation=conversation["id"])
    second = await create(service, "Two", conversation=conversation["id"])
    await create(service, "Three", conversation=conversation["id"])

    reply = await service.http.get(f"{PATH}/{second['id']}/input_items?order=asc")

    assert [item["content"][0]["text"] for item in reply.json()["data"]] == ["One", "One", "Two"]


async def test_turn_follows_the_message_that_it_names(service: Service) -> None:
    conversation = (await service.http.post("/v1/conversations", json={})).json()["id"]
    first = await create(service, "One", conversation=conversation)
    branch = {"conversation": conversation, "chatserve:parent_id": first["output"][0]["id"]}
    await create(service, "Two", **branch)

    sibling = await create(service, "Three", **branch)

    reply = await service.http.get(f"{PATH}/{sibling['id']}/input_items?order=asc")
    assert [item["content"][0]["text"] for item in reply.json()["data"]] == ["One", "One", "Three"]
    forked = await create(service, "Four", previous_response_id=sibling["id"])
    reply = await service.http.get(f"{PATH}/{forked['id']}/input_items?order=asc")
    texts = [item["content"][0]["text"] for item in reply.json()["data"]]
    assert texts == ["One", "One", "Three", "Three", "Four"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("stream=maybe", "stream"),
        ("starting_after=1", "starting_after"),
        ("stream=true&starting_after=-1", "starting_after"),
        ("stream=true&starting_after=" + "9" * 5000, "starting_after"),
    ],
)
async def test_query_that_makes_no_sense_is_refused(
    service: Service, query: str, param: str
) -> None:
    response = await create(service, "Hello")

    reply = await service.http.get(f"{PATH}/{response['id']}?{query}")

    error = reply.json()["error"]
    assert (reply.status_code, error["type"], error["param"]) == (400, "invalid_request", param)


async def test_query_that_nobody_knows_is_told(service: Service) -> None:
    response = await create(service, "Hello")

    reply = await service.http.get(f"{PATH}/{response['id']}?colour=red")

    assert reply.headers["x-chatserve-ignored"] == "colour"


async def test_stream_of_an_answer_that_has_ended_is_its_replay(service: Service) -> None:
    events = await stream(service, "Hello")

    replayed = await follow(service, events[0]["response"]["id"])

    assert kinds_of(replayed) == kinds_of(events)
    assert replayed == events


async def test_other_methods_are_refused(service: Service) -> None:
    reply = await service.http.get(PATH)

    assert reply.status_code == 405


@pytest.mark.parametrize(
    ("query", "param"),
    [("include_obfuscation=true", "include_obfuscation"), ("include[]=usage", "include")],
)
async def test_additions_to_a_response_are_refused_as_in_a_body(
    service: Service, query: str, param: str
) -> None:
    created = (await service.http.post(PATH, json={"model": "echo", "input": "Hi"})).json()

    reply = await service.http.get(f"{PATH}/{created['id']}?{query}")

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_streams_of_one_user_are_bounded(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses_http, "_MAX_STREAMS", 1)
    service.model.hold()
    created = await service.http.post(PATH, json=body("Hi", background=True))
    path = f"{PATH}/{created.json()['id']}?stream=true"
    async with service.http.stream("GET", path) as first:
        refused = await service.http.get(path)
        service.model.release()
        await first.aread()

    again = await service.http.get(path)

    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_streams")
    assert again.status_code == 200
