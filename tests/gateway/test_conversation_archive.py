"""Search over conversations; export and import as one document."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from gateway.gateway_helpers import Service
from gateway.secured_helpers import bearer, run_secured_service

from chatserve.errors import Conflict, StoreError
from chatserve.gateway.conversation_search import MAX_MESSAGES_PER_CALL
from chatserve.identity import LOCAL, Owner
from chatserve.store import keys
from chatserve.store.session_store import Sessions
from chatserve.store.sessions import Message

PATH = "/v1/chatserve/conversations"


STORED = (keys.SESSION, keys.MESSAGES, keys.TREE)


async def create(service: Service, *texts: str, **body: Any) -> str:
    items = [{"role": "user", "content": text} for text in texts]
    reply = await service.http.post("/v1/conversations", json={"items": items, **body})
    conversation_id: str = reply.json()["id"]
    return conversation_id


async def search(service: Service, q: str, **query: Any) -> Any:
    reply = await service.http.get(f"{PATH}/search", params={"q": q, **query})
    assert reply.status_code == 200, reply.text
    return reply.json()


def found(hits: Any) -> list[str]:
    return [hit["conversation"]["id"] for hit in hits["data"]]


async def test_search_finds_titles_and_messages_whatever_their_case(service: Service) -> None:
    straße = await create(service, "In der Straße 5", title="Gassen")
    titled = await create(service, "Hello", title="STRASSE und Haus")
    await create(service, "Something else")

    hits = await search(service, "strasse")

    assert found(hits) == [titled, straße]
    (in_title,), (in_message,) = (hit["matches"] for hit in hits["data"])
    assert (in_title["item_id"], in_title["excerpt"]) == (None, "STRASSE und Haus")
    assert (in_message["role"], in_message["excerpt"]) == ("user", "In der Straße 5")
    assert (hits["has_more"], hits["cursor"]) == (False, None)


async def test_search_goes_on_where_it_stopped_and_finds_all_once(service: Service) -> None:
    ids = [await create(service, "a needle") for _ in range(5)]

    hits = await search(service, "needle", limit=2)
    pages = [found(hits)]
    while hits["cursor"] is not None:
        hits = await search(service, "needle", limit=2, cursor=hits["cursor"])
        pages.append(found(hits))

    assert [conversation_id for page in pages for conversation_id in page] == ids[::-1]
    assert len(pages[0]) == 2


async def test_one_call_of_a_search_reads_a_bounded_number_of_messages(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [Message(f"msg_{i}", "user", "hay", 0) for i in range(MAX_MESSAGES_PER_CALL + 100)]
    needle = Message("msg_needle", "user", "needle", 0)
    long = "conv_f1"
    await service.store.sessions.create(LOCAL.owner, long, messages=[needle, *messages])
    read: list[int] = []
    newest_messages = Sessions.newest_messages

    async def counted(self: Sessions, *arguments: Any) -> Any:
        pieces = await newest_messages(self, *arguments)
        read.append(len(pieces))
        return pieces

    monkeypatch.setattr(Sessions, "newest_messages", counted)

    first = await search(service, "needle")
    num_read = sum(read)
    second = await search(service, "needle", cursor=first["cursor"])

    assert found(first) == []
    assert num_read < MAX_MESSAGES_PER_CALL + 100
    assert found(second) == [long]


async def test_excerpt_of_a_search_begins_with_a_whole_word(service: Service) -> None:
    await create(service, "Some words that stand before, so many that not all are shown: a needle")

    (hit,) = (await search(service, "needle"))["data"]

    assert hit["matches"][0]["excerpt"] == "…so many that not all are shown: a needle"


async def test_search_does_not_see_what_is_anothers(service: Service) -> None:
    other = Owner(LOCAL.tenant, "other")
    await service.store.sessions.create(
        other, "conv_f2", messages=[Message("msg_1", "user", "needle", 0)]
    )

    forged = await search(service, "needle", cursor="9999999999999.9999999999999-0.conv_f2")

    assert found(forged) == found(await search(service, "needle")) == []


async def test_export_comes_back_as_the_same_conversations_under_new_ids(
    service: Service,
) -> None:
    conversation_id = await create(service, "a", "b", title="Mine", metadata={"k": "v"})
    first = (await service.http.get(f"{PATH}/{conversation_id}/export")).json()
    parent = first["conversations"][0]["items"][0]["id"]
    body = {"items": [{"role": "user", "content": "c"}], "chatserve:parent_id": parent}
    await service.http.post(f"/v1/conversations/{conversation_id}/items", json=body)
    await service.http.post(f"{PATH}/{await create(service, 'old')}/archive", json={})

    document = (await service.http.get(f"{PATH}/export")).json()
    old = document["conversations"]
    for archived in old:
        await service.http.delete(f"/v1/conversations/{archived['id']}")
    imported = await service.http.post(f"{PATH}/import", json=document)
    new = (await service.http.get(f"{PATH}/export")).json()["conversations"]

    assert imported.json()["num_items"] == 4
    assert len(new) == len(old) == 2
    assert all(anonymous(archived) in map(anonymous, new) for archived in old)
    assert not {each["id"] for each in old} & set(imported.json()["conversation_ids"])


async def test_import_leaves_out_what_is_there_already(service: Service) -> None:
    kept = await create(service, "a", "b", title="Mine")
    deleted = await create(service, "c")
    document = (await service.http.get(f"{PATH}/export")).json()
    await service.http.delete(f"/v1/conversations/{deleted}")
    body = {"items": [{"role": "user", "content": "said since"}]}
    await service.http.post(f"/v1/conversations/{kept}/items", json=body)
    await service.http.post(f"{PATH}/{kept}/title", json={"title": "Named since"})

    imported = (await service.http.post(f"{PATH}/import", json=document)).json()

    assert imported["existing_conversation_ids"] == [kept]
    assert (len(imported["conversation_ids"]), imported["num_items"]) == (1, 1)
    assert len((await service.http.get(PATH)).json()["data"]) == 2


@pytest.mark.parametrize("change", ["text", "gone", "added"])
async def test_conversation_that_has_changed_is_imported_as_a_copy(
    service: Service, change: str
) -> None:
    conversation_id = await create(service, "a", "b")
    document = (await service.http.get(f"{PATH}/export")).json()
    items = document["conversations"][0]["items"]
    if change == "text":
        items[1]["text"] = "other words"
    elif change == "gone":
        path = f"/v1/conversations/{conversation_id}/items/{items[1]['id']}"
        await service.http.delete(path)
    else:
        items.append({**items[1], "id": "new", "parent_id": items[1]["id"]})

    imported = (await service.http.post(f"{PATH}/import", json=document)).json()

    assert imported["existing_conversation_ids"] == []
    assert imported["num_items"] == len(items)
    assert len((await service.http.get(PATH)).json()["data"]) == 2


async def test_two_conversations_of_one_id_are_both_imported(service: Service) -> None:
    await create(service, "a")
    document = (await service.http.get(f"{PATH}/export")).json()
    document["conversations"] *= 2

    imported = (await service.http.post(f"{PATH}/import", json=document)).json()

    assert imported["existing_conversation_ids"] == []
    assert len(imported["conversation_ids"]) == 2


async def test_conversation_of_somebody_else_is_not_there_already(service: Service) -> None:
    other = Owner(LOCAL.tenant, "other")
    message = Message("msg_1", "user", "t", 1)
    await service.store.sessions.create(other, "conv_f3", messages=[message])
    conversation = {**document()["conversations"][0], "id": "conv_f3", "items": [item("msg_1")]}
    body = {**document(), "conversations": [conversation]}

    imported = (await service.http.post(f"{PATH}/import", json=body)).json()

    assert imported["existing_conversation_ids"] == []
    assert len(imported["conversation_ids"]) == 1


def anonymous(archived: Any) -> Any:
    """Return a conversation with its ids replaced by places."""
    places = {item["id"]: place for place, item in enumerate(archived["items"])}
    items = [
        {**item, "id": places[item["id"]], "parent_id": places.get(item["parent_id"])}
        for item in archived["items"]
    ]
    return {**archived, "id": "", "items": items}


def document(**fields: Any) -> Any:
    conversation = {"id": "c", "title": "", "created_at": 1, "updated_at": 2, "items": []}
    return {
        "object": "chatserve.conversations",
        "format": 1,
        "conversations": [conversation, {**conversation, **fields}],
    }


def item(name: str, parent_id: str | None = None) -> Any:
    return {"id": name, "parent_id": parent_id, "role": "user", "text": "t", "created_at": 1}


async def test_import_that_the_store_breaks_off_leaves_nothing_behind(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_session = Sessions.create
    created: list[str] = []

    async def fail_the_second(self: Sessions, *arguments: Any, **options: Any) -> Any:
        if created:
            raise StoreError("no memory is left")
        created.append(arguments[1])
        return await create_session(self, *arguments, **options)

    monkeypatch.setattr(Sessions, "create", fail_the_second)

    reply = await service.http.post(f"{PATH}/import", json=document(items=[item("a")]))

    assert reply.status_code == 503
    assert (await service.http.get(PATH)).json()["data"] == []


async def test_half_an_import_is_seen_by_nobody_and_runs_out(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill in the middle had let through was listed, and stayed."""
    create_session = Sessions.create
    is_half_done, goes_on = asyncio.Event(), asyncio.Event()
    created: list[str] = []

    async def wait_before_the_second(self: Sessions, *arguments: Any, **options: Any) -> Any:
        if created:
            is_half_done.set()
            await goes_on.wait()
        created.append(arguments[1])
        return await create_session(self, *arguments, **options)

    monkeypatch.setattr(Sessions, "create", wait_before_the_second)
    body = document(items=[item("a"), item("b", "a")])
    body["conversations"].reverse()
    importing = asyncio.create_task(service.http.post(f"{PATH}/import", json=body))
    await is_half_done.wait()
    seen = (await service.http.get(PATH)).json()["data"]
    lifetimes = [await ttl_of(service, kind + created[0]) for kind in STORED]
    goes_on.set()
    imported = (await importing).json()["conversation_ids"]
    listed = (await service.http.get(PATH)).json()["data"]

    assert seen == []
    assert all(0 < ttl_s <= keys.HIDDEN_TTL_S for ttl_s in lifetimes)
    assert sorted(each["id"] for each in listed) == sorted(imported)
    assert [await ttl_of(service, kind + created[0]) for kind in STORED] == [-1, -1, -1]


async def ttl_of(service: Service, name: str) -> int:
    ttl_s: int = await service.store.commands.call("TTL", keys.FIRST.key(name))
    return ttl_s


class SlowBody:
    """A request's body whose rest is sent when the test says so.

    Owns: how far it has come. Used from: one test.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.has_begun = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def read(self) -> AsyncIterator[bytes]:
        yield self._content[:5]
        self.has_begun.set()
        await self.goes_on.wait()
        yield self._content[5:]


async def test_users_whose_documents_trickle_in_keep_nobody_from_importing(store_url: str) -> None:
    """Four of them took all places, for as long as a body may take."""
    async with run_secured_service(store_url) as secured:
        http, path, whole = secured.service.http, f"{PATH}/import", orjson.dumps(document())
        bodies = {f"user{number}": SlowBody(whole) for number in range(6)}
        keys_of = {user: bearer(await secured.issue(user)) for user in bodies}
        slow = [
            asyncio.create_task(http.post(path, content=body.read(), headers=keys_of[user]))
            for user, body in bodies.items()
        ]
        for body in bodies.values():
            await body.has_begun.wait()
        quick = await http.post(path, content=whole, headers=bearer(secured.member))
        for body in bodies.values():
            body.goes_on.set()
        await asyncio.gather(*slow)

    assert quick.status_code == 200


async def test_times_from_the_future_are_taken_as_now(service: Service) -> None:
    body = document(created_at=2**40, updated_at=2**40)

    imported = (await service.http.post(f"{PATH}/import", json=body)).json()

    path = f"/v1/conversations/{imported['conversation_ids'][1]}"
    assert (await service.http.get(path)).json()["updated_at"] < 2**33


async def test_one_user_imports_one_document_at_a_time(service: Service) -> None:
    document = (await service.http.get(f"{PATH}/export")).content
    body = SlowBody(document)
    importing = asyncio.create_task(service.http.post(f"{PATH}/import", content=body.read()))
    await body.has_begun.wait()
    refused = await service.http.post(f"{PATH}/import", content=document)
    body.goes_on.set()

    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "import_in_progress")
    assert (await importing).status_code == 200
    assert (await service.http.post(f"{PATH}/import", content=document)).status_code == 200


async def test_import_that_would_pass_a_limit_stores_none_of_its_conversations(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(service, "one")
    await create(service, "two")
    archive = document()
    create_session = Sessions.create
    num_created = 0

    async def refusing(self: Sessions, *arguments: Any, **options: Any) -> Any:
        nonlocal num_created
        num_created += 1
        if num_created == 2:
            raise Conflict("full", code="too_many_conversations")
        return await create_session(self, *arguments, **options)

    monkeypatch.setattr(Sessions, "create", refusing)

    reply = await service.http.post(f"{PATH}/import", json=archive)

    assert reply.status_code == 409
    assert len((await service.http.get(PATH)).json()["data"]) == 2
