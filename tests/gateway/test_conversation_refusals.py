"""What the conversations endpoints refuse, and whom they answer as if there were nothing."""

from typing import Any

import pytest
from gateway.gateway_helpers import Service
from store.store_helpers import messages_of

from chatserve.engine.api import RequestId
from chatserve.identity import LOCAL, Owner
from chatserve.store.sessions import Message

PATH = "/v1/chatserve/conversations"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def create(service: Service) -> str:
    conversation_id: str = (await service.http.post("/v1/conversations", json={})).json()["id"]
    return conversation_id


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({}, "q"),
        ({"q": " "}, "q"),
        ({"q": "x" * 201}, "q"),
        ({"q": "x", "cursor": "nonsense"}, "cursor"),
        ({"q": "x", "cursor": "1.2-x.conv_a"}, "cursor"),
        ({"q": "x", "cursor": "0.0-0.conv_a"}, "cursor"),
        ({"q": "x", "cursor": "0.0.conv_a"}, "cursor"),
        ({"q": "x", "archived": "yes"}, "archived"),
    ],
)
async def test_search_for_nothing_or_from_nowhere_is_refused(
    shared_service: Service, query: Any, param: str
) -> None:
    reply = await shared_service.http.get(f"{PATH}/search", params=query)

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


def document(**fields: Any) -> Any:
    conversation = {"id": "c", "title": "", "created_at": 1, "updated_at": 2, "items": []}
    return {
        "object": "chatserve.conversations",
        "format": 1,
        "conversations": [conversation, {**conversation, **fields}],
    }


def item(name: str, parent_id: str | None = None) -> Any:
    return {"id": name, "parent_id": parent_id, "role": "user", "text": "t", "created_at": 1}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (document(title=5), "conversations[1].title"),
        (document(items=[{**item("a"), "role": "tool"}]), "conversations[1].items[0].role"),
        (document(items=[item("a"), item("a")]), "conversations[1].items[1].id"),
        (document(items=[item("a", "b"), item("b", "a")]), "conversations[1].items[0].parent_id"),
        (document(colour="red"), "conversations[1].colour"),
        (document(created_at=-1), "conversations[1].created_at"),
        ({**document(), "format": 2}, "format"),
        ({"object": "chatserve.conversations"}, "format"),
    ],
)
async def test_bad_document_is_refused_by_the_path_of_its_fault_and_nothing_is_stored(
    shared_service: Service, body: Any, param: str
) -> None:
    before = (await shared_service.http.get(PATH)).json()

    reply = await shared_service.http.post(f"{PATH}/import", json=body)

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
    assert (await shared_service.http.get(PATH)).json() == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/conversations/{id}"),
        ("POST", "/v1/conversations/{id}"),
        ("DELETE", "/v1/conversations/{id}"),
        ("GET", "/v1/conversations/{id}/items"),
        ("POST", "/v1/conversations/{id}/items"),
        ("GET", "/v1/conversations/{id}/items/msg_1"),
        ("DELETE", "/v1/conversations/{id}/items/msg_1"),
        ("POST", PATH + "/{id}/title"),
        ("POST", PATH + "/{id}/archive"),
        ("GET", PATH + "/{id}/branches"),
        ("GET", PATH + "/{id}/export"),
    ],
)
async def test_anothers_conversation_is_answered_like_one_that_does_not_exist(
    shared_service: Service, method: str, path: str
) -> None:
    theirs = [Message("msg_1", "user", "secret", 0, RequestId("resp_1"))]
    await shared_service.store.sessions.create(
        Owner(LOCAL.tenant, "other"), "conv_theirs", messages=theirs
    )
    body = {"title": "x", "items": [{"role": "user", "content": "y"}]} if method == "POST" else None

    there = await shared_service.http.request(method, path.format(id="conv_theirs"), json=body)
    absent = await shared_service.http.request(method, path.format(id="conv_absent"), json=body)

    assert there.status_code == absent.status_code == 404
    assert there.text.replace("theirs", "absent") == absent.text
    stored = await messages_of(shared_service.store, "conv_theirs")
    assert [message.content for message in stored] == ["secret"]


@pytest.mark.parametrize("header", ["3", 'W/"3"', '"x"', '"' + "1" * 99 + '"', '"1", "2"'])
async def test_entity_tag_that_is_none_is_refused(shared_service: Service, header: str) -> None:
    conversation_id = await create(shared_service)

    path = f"/v1/conversations/{conversation_id}"
    reply = await shared_service.http.post(path, json={}, headers={"if-match": header})

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "If-Match")


@pytest.mark.parametrize("query", [{"tree": "true", "branch": "msg_1"}, {"branch": "msg_1"}])
async def test_branch_that_is_none_or_not_alone_is_refused(
    shared_service: Service, query: Any
) -> None:
    conversation_id = await create(shared_service)

    path = f"/v1/conversations/{conversation_id}/items"
    reply = await shared_service.http.get(path, params=query)

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, next(iter(query)))
