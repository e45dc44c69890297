"""Sessions over HTTP, and their turns over the socket."""

from typing import Any

import pytest
from gateway.gateway_helpers import Event, Service, text_of

from chatserve.store import keys


async def create(service: Service, **body: Any) -> str:
    reply = await service.http.post("/v1/conversations", json=body)
    assert reply.status_code == 200
    conversation_id: str = reply.json()["id"]
    return conversation_id


async def take_turn(service: Service, conversation_id: str, text: str) -> list[Event]:
    async with service.socket() as socket:
        await socket.create(text, conversation=conversation_id)
        return await socket.receive_answer()


async def items_of(service: Service, conversation_id: str, **query: Any) -> Any:
    path = f"/v1/conversations/{conversation_id}/items"
    reply = await service.http.get(path, params={"order": "asc", **query})
    assert reply.status_code == 200
    return reply.json()


def texts(items: Any) -> list[tuple[str, str]]:
    return [(item["role"], item["content"][0]["text"]) for item in items["data"]]


SYSTEM = {"type": "message", "role": "system", "content": "Be brief."}


async def test_created_conversation_can_be_read_listed_and_deleted(service: Service) -> None:
    conversation_id = await create(service, metadata={"a": "b"}, items=[SYSTEM])

    read = (await service.http.get(f"/v1/conversations/{conversation_id}")).json()
    listed = (await service.http.get("/v1/chatserve/conversations")).json()
    deleted = (await service.http.delete(f"/v1/conversations/{conversation_id}")).json()
    gone = await service.http.get(f"/v1/conversations/{conversation_id}")

    assert (read["object"], read["metadata"], read["title"]) == ("conversation", {"a": "b"}, "")
    assert read["active_response_id"] is None
    assert listed == {"object": "list", "data": [read], "has_more": False}
    assert deleted == {"id": conversation_id, "object": "conversation.deleted", "deleted": True}
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "conversation_not_found")


async def test_turns_are_stored_with_how_they_ended(service: Service) -> None:
    conversation_id = await create(service, items=[SYSTEM])

    events = await take_turn(service, conversation_id, "Hello")

    items = await items_of(service, conversation_id)
    assert texts(items) == [("system", "Be brief."), ("user", "Hello"), ("assistant", "Hello")]
    answer = items["data"][2]
    response = events[-1]["response"]
    assert answer["id"] == response["output"][0]["id"]
    assert answer["chatserve:response_id"] == response["id"]
    assert answer["chatserve:usage"] == response["usage"]
    assert answer["chatserve:timings"] == response["chatserve:timings"]
    assert response["conversation"] == {"id": conversation_id}


async def test_next_turn_is_built_on_the_stored_ones_and_finds_them_cached(
    service: Service,
) -> None:
    conversation_id = await create(service, items=[SYSTEM])
    first = await take_turn(service, conversation_id, "Hello")

    second = await take_turn(service, conversation_id, "Again")

    first_usage, usage = (events[-1]["response"]["usage"] for events in (first, second))
    assert text_of(second) == "Again"
    # Prompt and answer of the first turn, all but the last sampled token, which ended it.
    said = first_usage["input_tokens"] + first_usage["output_tokens"] - 1
    assert usage["input_tokens_details"]["cached_tokens"] >= said - 1


async def test_users_message_is_stored_before_the_answer_begins(service: Service) -> None:
    conversation_id = await create(service)
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", conversation=conversation_id)
        created = await socket.receive()

        items = await items_of(service, conversation_id)
        read = (await service.http.get(f"/v1/conversations/{conversation_id}")).json()

    assert texts(items) == [("user", "Hello")]
    assert read["active_response_id"] == created["response"]["id"]
    assert read["title"] == "Hello"


async def test_second_turn_at_once_is_refused_and_stores_nothing(service: Service) -> None:
    conversation_id = await create(service)
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("first", conversation=conversation_id, stream_id="one")
        await socket.receive_until("response.queued")
        await socket.create("second", conversation=conversation_id, stream_id="two")
        *_, error = await socket.receive_until("error")
        service.model.release()
        await socket.receive_answer()

    assert (error["status"], error["error"]["code"]) == (409, "response_already_in_flight")
    assert texts(await items_of(service, conversation_id)) == [
        ("user", "first"),
        ("assistant", "first"),
    ]


async def test_stopped_answer_keeps_what_was_shown(service: Service) -> None:
    conversation_id = await create(service)
    service.model.hold()
    service.model.allow(3)
    async with service.socket() as socket:
        await socket.create("Hello", conversation=conversation_id)
        events = await socket.receive_texts(3)
        await socket.send("response.cancel")
        events += await socket.receive_answer()

    items = await items_of(service, conversation_id)
    assert texts(items) == [("user", "Hello"), ("assistant", text_of(events))]
    assert items["data"][1]["status"] == "incomplete"
    assert items["data"][1]["chatserve:incomplete_reason"] == "chatserve:cancelled"


async def test_turn_of_an_unknown_conversation_is_not_found(service: Service) -> None:
    events = await take_turn(service, "conv_unknown", "Hello")

    assert (events[0]["status"], events[0]["error"]["code"]) == (404, "conversation_not_found")


async def test_deleting_a_conversation_stops_its_answer(service: Service) -> None:
    conversation_id = await create(service)
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", conversation=conversation_id)
        await socket.receive_until("response.queued")
        await service.wait_until_held()

        await service.http.delete(f"/v1/conversations/{conversation_id}")

        events = await socket.receive_answer()
    assert events[-1]["type"] in ("response.incomplete", "error")
    service.model.release()
    await service.wait_until_idle()


async def test_what_a_deleted_conversation_was_answered_cannot_be_read_any_more(
    service: Service,
) -> None:
    """The response of an answer in flight stayed readable for ten minutes after its end."""
    conversation_id = await create(service)
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", conversation=conversation_id)
        response_id = (await socket.receive())["response"]["id"]
        await service.wait_until_held()

        await service.http.delete(f"/v1/conversations/{conversation_id}")
        running = await service.http.get(f"/v1/responses/{response_id}")
        service.model.release()
        events = await socket.receive_answer()
        ended = await service.http.get(f"/v1/responses/{response_id}")
        left_s = await service.store.commands.call("TTL", keys.FIRST.key(keys.LOG + response_id))

    assert (running.status_code, ended.status_code) == (404, 404)
    assert events[-1]["type"] == "response.incomplete"
    assert left_s <= keys.DELETED_LOG_TTL_S


async def test_update_changes_what_it_names_and_nothing_else(service: Service) -> None:
    conversation_id = await create(service, metadata={"a": "b"}, title="Old")

    path = f"/v1/conversations/{conversation_id}"
    renamed = (await service.http.post(path, json={"title": "New"})).json()
    tagged = (await service.http.post(path, json={"metadata": {"c": "d"}})).json()

    assert (renamed["title"], renamed["metadata"]) == ("New", {"a": "b"})
    assert (tagged["title"], tagged["metadata"]) == ("New", {"c": "d"})


async def test_items_are_listed_in_pages_in_either_order(service: Service) -> None:
    said = [{"role": "user", "content": text} for text in "abcd"]
    conversation_id = await create(service, items=said)

    first = await items_of(service, conversation_id, limit=3)
    rest = await items_of(service, conversation_id, limit=3, after=first["last_id"])
    newest = await items_of(service, conversation_id, limit=2, order="desc")

    assert [text for _, text in texts(first)] == ["a", "b", "c"]
    assert [text for _, text in texts(rest)] == ["d"]
    assert [text for _, text in texts(newest)] == ["d", "c"]
    assert (first["has_more"], rest["has_more"], newest["has_more"]) == (True, False, True)


async def test_conversations_are_listed_in_pages_newest_first(service: Service) -> None:
    ids = [await create(service) for _ in range(3)]
    await take_turn(service, ids[0], "Hello")

    path = "/v1/chatserve/conversations"
    first = (await service.http.get(path, params={"limit": 2})).json()
    before = first["data"][-1]["id"]
    rest = (await service.http.get(path, params={"limit": 2, "before": before})).json()

    listed = [entry["id"] for entry in first["data"] + rest["data"]]
    assert listed[0] == ids[0]
    assert sorted(listed) == sorted(ids)
    assert (first["has_more"], rest["has_more"]) == (True, False)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/v1/conversations", {"items": 5}, 400, "invalid_type"),
        ("POST", "/v1/conversations/conv_x", {"title": "t"}, 404, "conversation_not_found"),
        ("DELETE", "/v1/conversations/conv_x", None, 404, "conversation_not_found"),
        ("GET", "/v1/conversations/conv_x/items", None, 404, "conversation_not_found"),
        ("GET", "/v1/chatserve/conversations?limit=0", None, 400, "invalid_value"),
        ("GET", "/v1/chatserve/conversations?limit=x", None, 400, "invalid_value"),
        ("GET", "/v1/chatserve/conversations?limit=0000000100000", None, 400, "invalid_value"),
        ("GET", f"/v1/chatserve/conversations?limit={'1' * 4400}", None, 400, "invalid_value"),
        ("GET", "/v1/chatserve/conversations?before=c", None, 404, "conversation_not_found"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    service: Service, method: str, path: str, body: Any, status: int, code: str
) -> None:
    reply = await service.http.request(method, path, json=body)

    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("query", [{"after": "msg_unknown"}, {"order": "up"}, {"limit": "101"}])
async def test_wrong_page_of_items_is_refused_by_name(service: Service, query: Any) -> None:
    conversation_id = await create(service)

    reply = await service.http.get(f"/v1/conversations/{conversation_id}/items", params=query)

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, next(iter(query)))


async def test_response_builds_on_an_earlier_one(service: Service) -> None:
    async with service.socket() as socket:
        await socket.create("Hello", instructions="Be brief.")
        first = await socket.receive_answer()
        response_id = first[-1]["response"]["id"]
        await socket.create("Again", previous_response_id=response_id, stream_id="left")
        await socket.create("Other", previous_response_id=response_id, stream_id="right")
        forks = [await socket.receive_answer() for _ in range(2)]

    events = [event for fork in forks for event in fork]
    assert text_of([e for e in events if e["stream_id"] == "left"]) == "Again"
    assert text_of([e for e in events if e["stream_id"] == "right"]) == "Other"
    assert all(fork[-1]["response"]["usage"]["input_tokens"] > len("Hello") * 2 for fork in forks)


async def test_response_builds_on_a_turn_of_a_session_up_to_that_turn(service: Service) -> None:
    conversation_id = await create(service)
    first = await take_turn(service, conversation_id, "Hello")
    await take_turn(service, conversation_id, "Later")

    async with service.socket() as socket:
        await socket.create("Fork", previous_response_id=first[-1]["response"]["id"])
        fork = await socket.receive_answer()
        await socket.create("Fork", conversation=conversation_id)
        turn = await socket.receive_answer()

    fork_usage, turn_usage = (events[-1]["response"]["usage"] for events in (fork, turn))
    assert fork_usage["input_tokens"] < turn_usage["input_tokens"]
    assert len(texts(await items_of(service, conversation_id))) == 6


async def test_unknown_earlier_response_is_told_to_send_everything_again(
    service: Service,
) -> None:
    async with service.socket() as socket:
        await socket.create("Hello", previous_response_id="resp_unknown")

        error = await socket.receive()

    assert error["error"]["code"] == "previous_response_not_found"


async def test_earlier_response_must_have_ended(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", stream_id="one")
        created = await socket.receive()
        await socket.create(
            "Again", previous_response_id=created["response"]["id"], stream_id="two"
        )

        *_, error = await socket.receive_until("error")

    assert (error["status"], error["error"]["code"]) == (409, "previous_response_in_flight")


async def test_unstored_response_can_be_built_on_by_its_own_connection_only(
    service: Service,
) -> None:
    async with service.socket() as socket:
        await socket.create("Hello", store=False)
        events = await socket.receive_answer()
        earlier = events[-1]["response"]["id"]
        await socket.create("Again", previous_response_id=earlier)
        own = await socket.receive_answer()
    async with service.socket() as socket:
        await socket.create("Again", previous_response_id=earlier)
        foreign = await socket.receive_answer()

    assert text_of(own) == "Again"
    assert foreign[0]["error"]["code"] == "previous_response_not_found"


async def test_name_that_is_empty_is_told_as_ignored(service: Service) -> None:
    """It used to end the list of ignored names with a blank, which is no header."""
    reply = await service.http.post("/v1/conversations", json={"colour": 1, "": 2})

    assert reply.status_code == 200
    assert reply.headers["x-chatserve-ignored"] == 'colour, ""'


async def test_pinned_conversations_can_be_listed_alone(service: Service) -> None:
    ids = [(await service.http.post("/v1/conversations", json={})).json()["id"] for _ in range(3)]
    await service.http.post(f"/v1/conversations/{ids[1]}", json={"pinned": True})
    path = "/v1/chatserve/conversations"

    pinned = (await service.http.get(path, params={"pinned": "true"})).json()
    refused = await service.http.get(path, params={"pinned": "true", "archived": "true"})

    assert [each["id"] for each in pinned["data"]] == [ids[1]]
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "pinned")
