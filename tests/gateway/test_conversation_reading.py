"""Large conversations: who asks for little reads little, and a user who reads much stops nobody."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from gateway.gateway_helpers import Service, eventually
from gateway.lexing_spy import lexed_lengths

from chatserve.gateway.conversation_reading import (
    PAGE_BYTES,
    PIECE_BYTES,
    ConversationReading,
)
from chatserve.identity import Owner
from chatserve.store.sessions import Message, MessagePlace, Outline

TEXT = "x" * 3000
NUM_ITEMS = 500
OVERHEAD = 300  # bytes of a message besides its text, and of its place in the outline


class Replies:
    """How many bytes of texts the store replied with, to all commands and to the largest."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.total = 0
        self.largest = 0
        for name in ("call", "call_many", "run_many"):
            original = getattr(service.store.commands, name)
            monkeypatch.setattr(service.store.commands, name, self._weighed(original))

    def forget(self) -> None:
        self.total = self.largest = 0

    def _weighed(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def weighed(*arguments: Any, **options: Any) -> Any:
            reply = await original(*arguments, **options)
            size = size_of(reply)
            self.total += size
            self.largest = max(self.largest, size)
            return reply

        return weighed


def size_of(reply: Any) -> int:
    if isinstance(reply, list | tuple):
        return sum(map(size_of, reply))
    return len(reply) if isinstance(reply, str) else 0


@pytest.fixture
def replies(service: Service, monkeypatch: pytest.MonkeyPatch) -> Replies:
    return Replies(service, monkeypatch)


def item(number: int, parent: int | None, text: str = TEXT) -> dict[str, Any]:
    return {
        "id": f"i{number}",
        "parent_id": None if parent is None else f"i{parent}",
        "role": "assistant" if number % 2 else "user",
        "text": text,
        "created_at": 1,
    }


def chain(number: int, text: str = TEXT) -> list[dict[str, Any]]:
    return [item(place, place - 1 if place else None, text) for place in range(number)]


async def imported(service: Service, items: list[dict[str, Any]]) -> str:
    conversation = {"id": "a", "title": "large", "created_at": 1, "updated_at": 1, "items": items}
    document = {"object": "chatserve.conversations", "format": 1, "conversations": [conversation]}
    reply = await service.http.post("/v1/chatserve/conversations/import", json=document)
    assert reply.status_code == 200, reply.text
    conversation_id: str = reply.json()["conversation_ids"][0]
    return conversation_id


async def get(service: Service, path: str, **params: Any) -> Any:
    reply = await service.http.get(path, params=params)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_page_of_items_is_all_that_is_read_of_a_conversation(
    service: Service, replies: Replies
) -> None:
    """A page, and each single item, had the whole conversation read and decoded at once."""
    conversation_id = await imported(service, chain(NUM_ITEMS))
    path = f"/v1/conversations/{conversation_id}/items"
    outline = NUM_ITEMS * OVERHEAD

    replies.forget()
    page = await get(service, path, limit=5)
    of_page = replies.total
    replies.forget()
    one = await get(service, f"{path}/{page['data'][2]['id']}")
    of_item = replies.total
    replies.forget()
    branches = await get(service, f"/v1/chatserve/conversations/{conversation_id}/branches")

    assert len(page["data"]) == 5
    assert page["has_more"]
    assert one == page["data"][2]
    assert of_page < outline + 5 * (len(TEXT) + OVERHEAD)
    assert of_item < outline + len(TEXT) + OVERHEAD
    assert [branch["num_items"] for branch in branches["data"]] == [NUM_ITEMS]
    assert replies.total < outline + len(TEXT) + OVERHEAD


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_page_of_large_items_ends_early_and_the_next_one_goes_on(
    service: Service, order: str
) -> None:
    text = "y" * (PAGE_BYTES * 2 // 5)
    conversation_id = await imported(service, [*chain(4, text), item(4, 3, "z" * 2 * PAGE_BYTES)])
    path = f"/v1/conversations/{conversation_id}/items"

    pages = [await get(service, path, limit=100, order=order)]
    while pages[-1]["has_more"]:
        after = pages[-1]["last_id"]
        pages.append(await get(service, path, limit=100, order=order, after=after))

    sizes = [[len(each["content"][0]["text"]) for each in page["data"]] for page in pages]
    expected = [[len(text)] * 2, [len(text)] * 2, [2 * PAGE_BYTES]]
    assert sizes == (expected if order == "asc" else expected[::-1])


async def test_export_is_read_and_sent_in_pieces(service: Service, replies: Replies) -> None:
    conversation_id = await imported(service, chain(NUM_ITEMS))

    replies.forget()
    document = await get(service, f"/v1/chatserve/conversations/{conversation_id}/export")

    [conversation] = document["conversations"]
    assert [each["text"] for each in conversation["items"]] == [TEXT] * NUM_ITEMS
    assert replies.largest < PIECE_BYTES + 64 * OVERHEAD + NUM_ITEMS * OVERHEAD


async def test_turn_that_no_prompt_can_hold_is_refused_unread(
    service: Service, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two requests of one member took 5 GB: an import, and a turn in what it had made."""
    conversation_id = await imported(service, chain(NUM_ITEMS))
    lengths = lexed_lengths(monkeypatch)
    replies.forget()

    reply = await service.http.post(
        "/v1/responses", json={"model": "echo", "input": "x", "conversation": conversation_id}
    )

    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (
        400,
        "context_length_exceeded",
        "input",
    )
    assert replies.total < NUM_ITEMS * OVERHEAD
    assert lengths == []


async def test_turn_reads_its_own_branch_alone(service: Service, replies: Replies) -> None:
    large = [item(number, number - 1 if number > 1 else None) for number in range(1, NUM_ITEMS)]
    conversation_id = await imported(service, [item(0, None, "short"), *large])
    path = f"/v1/conversations/{conversation_id}/items"
    first = (await get(service, path, tree="true", limit=1, order="asc"))["data"][0]
    body = {"model": "echo", "conversation": conversation_id}
    replies.forget()

    reply = await service.http.post(
        "/v1/responses", json={**body, "input": "hi", "chatserve:parent_id": first["id"]}
    )

    assert reply.json()["output"][0]["content"][0]["text"] == "hi"
    assert replies.total < NUM_ITEMS * OVERHEAD + 20_000
    replies.forget()
    items = await get(service, f"/v1/responses/{reply.json()['id']}/input_items", limit=1)
    assert [each["content"][0]["text"] for each in items["data"]] == ["hi"]
    assert replies.total < NUM_ITEMS * OVERHEAD + 20_000


class SlowSessions:
    """Sessions that are read when the test says so."""

    def __init__(self) -> None:
        self.num_begun = 0
        self._may_go_on = asyncio.Event()

    async def outline(self, _session_id: str) -> Outline:
        return Outline({"a": MessagePlace("1-0", 1, None)})

    async def read(self, session_id: str, _outline: Outline, _ids: Sequence[str]) -> list[Message]:
        if session_id == "bobs":
            self.num_begun += 1
            await self._may_go_on.wait()
        return []

    def go_on(self) -> None:
        self._may_go_on.set()


async def test_user_who_reads_much_keeps_no_other_waiting() -> None:
    sessions: Any = SlowSessions()
    reading = ConversationReading(sessions)

    async def read(owner: Owner, session_id: str) -> list[Message]:
        return await (await reading.open(owner, session_id)).messages(["a"])

    bobs = [asyncio.create_task(read(Owner("t", "bob"), "bobs")) for _ in range(40)]
    await eventually(lambda: sessions.num_begun > 0)

    async with asyncio.timeout(10):
        await read(Owner("t", "eve"), "eves")

    assert sessions.num_begun == 2
    sessions.go_on()
    await asyncio.gather(*bobs)
