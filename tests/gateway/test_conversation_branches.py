"""Branches, versions and the archive over HTTP, with turns over the socket."""

from typing import Any

from gateway.gateway_helpers import Event, Service


async def create(service: Service, **body: Any) -> str:
    conversation_id: str = (await service.http.post("/v1/conversations", json=body)).json()["id"]
    return conversation_id


async def take_turn(
    service: Service, conversation_id: str, text: str, parent_id: str | None = None
) -> list[Event]:
    async with service.socket() as socket:
        members = {"chatserve:parent_id": parent_id} if parent_id else {}
        await socket.create(text, conversation=conversation_id, **members)
        return await socket.receive_answer()


async def items(service: Service, conversation_id: str, **query: Any) -> list[Any]:
    path = f"/v1/conversations/{conversation_id}/items"
    reply = await service.http.get(path, params={"order": "asc", "limit": 100, **query})
    assert reply.status_code == 200, reply.text
    data: list[Any] = reply.json()["data"]
    return data


def texts(found: list[Any]) -> list[str]:
    return [item["content"][0]["text"] for item in found]


async def test_turn_with_a_parent_is_a_branch_next_to_what_was_there(service: Service) -> None:
    conversation_id = await create(service)
    await take_turn(service, conversation_id, "one")
    await take_turn(service, conversation_id, "two")
    first = (await items(service, conversation_id))[1]["id"]

    await take_turn(service, conversation_id, "other", first)

    newest = await items(service, conversation_id)
    everything = await items(service, conversation_id, tree="true")
    old_leaf = next(item["id"] for item in everything if texts([item]) == ["two"])
    assert texts(newest) == ["one", "one", "other", "other"]
    assert texts(everything) == ["one", "one", "two", "two", "other", "other"]
    assert (
        texts(await items(service, conversation_id, branch=old_leaf))
        == ["one", "one"] + ["two"] * 2
    )
    assert newest[2]["chatserve:parent_id"] == first


async def test_branches_are_told_with_where_they_part(service: Service) -> None:
    conversation_id = await create(service)
    await take_turn(service, conversation_id, "one")
    question = (await items(service, conversation_id))[0]["id"]
    await take_turn(service, conversation_id, "again", "root")
    await take_turn(service, conversation_id, "more", question)

    path = f"/v1/chatserve/conversations/{conversation_id}/branches"
    branches = (await service.http.get(path)).json()

    assert [branch["excerpt"] for branch in branches["data"]] == ["one", "again", "more"]
    assert [branch["num_items"] for branch in branches["data"]] == [2, 2, 3]
    assert [branch["is_newest"] for branch in branches["data"]] == [False, False, True]
    assert [fork["parent_id"] for fork in branches["forks"]] == [None, question]
    assert all(len(fork["item_ids"]) == 2 for fork in branches["forks"])


async def test_branches_are_answered_side_by_side_and_each_is_built_on_its_own(
    service: Service,
) -> None:
    conversation_id = await create(service, items=[{"role": "system", "content": "Be brief."}])
    system = (await items(service, conversation_id))[0]["id"]
    service.model.hold()
    async with service.socket() as socket:
        for lane in ("left", "right"):
            parent = {"chatserve:parent_id": system, "stream_id": lane}
            await socket.create(lane, conversation=conversation_id, **parent)
            await socket.receive_until("response.queued")
        read = (await service.http.get(f"/v1/conversations/{conversation_id}")).json()
        service.model.release()
        answers = [await socket.receive_answer() for _ in range(2)]

    assert len(read["active_response_ids"]) == 2
    assert read["active_response_id"] == read["active_response_ids"][-1]
    assert {events[-1]["type"] for events in answers} == {"response.completed"}
    everything = await items(service, conversation_id, tree="true")
    assert sorted(texts(everything)[1:]) == ["left", "left", "right", "right"]
    after = (await service.http.get(f"/v1/conversations/{conversation_id}")).json()
    assert after["active_response_ids"] == []


async def test_unknown_parent_is_refused_by_name(service: Service) -> None:
    conversation_id = await create(service)

    events = await take_turn(service, conversation_id, "Hello", "msg_elsewhere")

    assert events[0]["error"]["code"] == "message_not_found"
    assert events[0]["error"]["param"] == "chatserve:parent_id"
    assert await items(service, conversation_id) == []


async def test_deleted_item_leaves_the_rest_of_its_branch(service: Service) -> None:
    said = [{"role": "user", "content": text} for text in "abc"]
    conversation_id = await create(service, items=said)
    a, b, c = (item["id"] for item in await items(service, conversation_id))

    path = f"/v1/conversations/{conversation_id}/items/{b}"
    first = await service.http.delete(path)
    second = await service.http.delete(path)

    left = await items(service, conversation_id)
    assert (first.status_code, second.status_code) == (200, 404)
    assert [(item["id"], item["chatserve:parent_id"]) for item in left] == [(a, None), (c, a)]


async def test_items_are_appended_below_a_parent(service: Service) -> None:
    said = [{"role": "user", "content": text} for text in "ab"]
    conversation_id = await create(service, items=said)
    first = (await items(service, conversation_id))[0]["id"]

    path = f"/v1/conversations/{conversation_id}/items"
    body = {"items": [{"role": "user", "content": "c"}], "chatserve:parent_id": first}
    reply = (await service.http.post(path, json=body)).json()

    assert reply["data"][0]["chatserve:parent_id"] == first
    assert texts(await items(service, conversation_id)) == ["a", "c"]


async def test_items_cannot_be_appended_under_an_answer_in_flight(service: Service) -> None:
    conversation_id = await create(service)
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("Hello", conversation=conversation_id)
        await socket.receive_until("response.queued")

        path = f"/v1/conversations/{conversation_id}/items"
        reply = await service.http.post(path, json={"items": [{"role": "user", "content": "c"}]})

    assert reply.json()["error"]["code"] == "response_already_in_flight"


async def test_every_change_of_a_conversation_is_a_new_version(service: Service) -> None:
    conversation_id = await create(service)
    path = f"/v1/conversations/{conversation_id}"
    ours = f"/v1/chatserve/conversations/{conversation_id}"

    replies = [
        await service.http.post(path, json={"metadata": {"a": "b"}}),
        await service.http.post(path, json={"pinned": True, "chatserve:version": 1}),
        await service.http.post(f"{ours}/title", json={"title": "Mine"}),
        await service.http.post(f"{ours}/archive", headers={"if-match": '"3"'}),
    ]
    stale = await service.http.post(path, json={"title": "x", "chatserve:version": 3})

    assert [reply.json()["chatserve:version"] for reply in replies] == [1, 2, 3, 4]
    assert [reply.headers["etag"] for reply in replies] == ['"1"', '"2"', '"3"', '"4"']
    last = replies[-1].json()
    assert (last["title"], last["pinned"], last["archived"]) == ("Mine", True, True)
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "version_conflict")


async def test_archived_conversation_is_hidden_unless_asked_for(service: Service) -> None:
    kept, hidden = await create(service), await create(service)
    ours = f"/v1/chatserve/conversations/{hidden}/archive"
    await service.http.post(ours, json={})

    path = "/v1/chatserve/conversations"
    shown = (await service.http.get(path)).json()
    archived = (await service.http.get(path, params={"archived": "true"})).json()

    assert [entry["id"] for entry in shown["data"]] == [kept]
    assert [entry["id"] for entry in archived["data"]] == [hidden]
