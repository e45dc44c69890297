"""Branches of a session: turns that name their parent, deleted messages, versions, two tabs."""

import asyncio
from dataclasses import replace

import pytest
from store.store_helpers import (
    OWNER,
    append,
    check_invariants,
    claim_names,
    ending,
    make_message,
    make_record,
    make_request,
    messages_of,
    turn_of,
)

from chatserve.engine.api import RequestId
from chatserve.errors import Conflict, NotFound
from chatserve.identity import Owner
from chatserve.store.connection import Store
from chatserve.store.session_store import ListPlace
from chatserve.store.sessions import (
    MAX_ANSWERS,
    ROOT,
    Message,
    MessagePlace,
    NewSession,
    Outline,
    SessionChange,
    SessionTurn,
    TitleSource,
)


def message(name: str, parent_id: str | None = None, content: str = "text") -> Message:
    return Message(name, "user", content, 1_700_000_000, parent_id=parent_id)


async def take(store: Store, name: str, turn: SessionTurn) -> None:
    """Put a turn into the queue."""
    record = make_record(name, session_id=turn.session_id)
    await store.queue.enqueue(make_request(name), record, max_queue=100, turn=turn)


async def answer(store: Store, name: str) -> None:
    """Let a worker answer what waits, and this request of it."""
    await claim_names(store, "w")
    await append(store, ending(name, 1, 2))


async def paths(store: Store, session_id: str = "s") -> list[list[str]]:
    tree = (await store.sessions.outline(session_id)).tree
    return [tree.path(leaf) for leaf in tree.leaves()]


async def test_answer_follows_the_message_that_it_answers(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[make_message("system")])
    await take(store, "a", turn_of("a", "s"))
    await answer(store, "a")

    system = make_message("system").message_id
    assert await paths(store) == [[system, "message-of-a", "answer-of-a"]]


async def test_two_tabs_with_the_same_parent_keep_both_messages_as_siblings(store: Store) -> None:
    """Tabs that wrote the whole conversation back used to lose what the other had said."""
    await store.sessions.create(OWNER, "s", messages=[message("first")])

    await asyncio.gather(
        *(take(store, name, turn_of(name, "s", parent_id="first")) for name in "ab")
    )

    session = await store.sessions.get("s")
    assert session is not None
    assert sorted(session.active_response_ids) == ["a", "b"]
    assert session.active_response_id == session.active_response_ids[-1]
    tree = (await store.sessions.outline("s")).tree
    assert sorted(tree.children("first")) == ["message-of-a", "message-of-b"]
    await check_invariants(store)
    await answer(store, "b")
    await append(store, ending("a", 1, 2))
    assert sorted(await paths(store)) == [
        ["first", "message-of-a", "answer-of-a"],
        ["first", "message-of-b", "answer-of-b"],
    ]
    await check_invariants(store)


async def test_turn_without_messages_answers_its_parent_once_more(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await take(store, "a", turn_of("a", "s"))
    await answer(store, "a")

    await take(store, "b", SessionTurn("s", (), "message-of-a"))
    await answer(store, "b")

    assert await paths(store) == [
        ["message-of-a", "answer-of-a"],
        ["message-of-a", "answer-of-b"],
    ]


async def test_turn_at_the_root_begins_the_conversation_anew(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("first")])

    await take(store, "a", turn_of("a", "s", parent_id=ROOT))

    assert await paths(store) == [["first"], ["message-of-a"]]


async def test_turn_without_a_parent_waits_for_every_answer_in_flight(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("first")])
    await take(store, "a", turn_of("a", "s", parent_id="first"))

    with pytest.raises(Conflict) as refusal:
        await take(store, "b", turn_of("b", "s"))

    assert refusal.value.code == "response_already_in_flight"


async def test_answers_in_flight_are_bounded(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("first")])
    for i in range(MAX_ANSWERS):
        await take(store, f"a{i}", turn_of(f"a{i}", "s", parent_id="first"))

    with pytest.raises(Conflict) as refusal:
        await take(store, "b", turn_of("b", "s", parent_id="first"))

    assert refusal.value.code == "response_already_in_flight"
    assert "message-of-b" not in (await store.sessions.outline("s")).tree


async def test_unknown_or_deleted_parent_is_refused_and_nothing_stored(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("first"), message("second")])
    await store.sessions.delete_message("s", "second")

    for parent_id in ("elsewhere", "second"):
        with pytest.raises(NotFound) as refusal:
            await take(store, "a", turn_of("a", "s", parent_id=parent_id))
        assert refusal.value.code == "message_not_found"

    assert await paths(store) == [["first"]]
    await check_invariants(store)


async def test_deleted_message_is_gone_and_what_followed_it_stays_in_its_place(
    store: Store,
) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("first")])
    await take(store, "a", turn_of("a", "s"))
    await answer(store, "a")

    assert await store.sessions.delete_message("s", "message-of-a")

    assert not await store.sessions.delete_message("s", "message-of-a")
    assert await paths(store) == [["first", "answer-of-a"]]
    [_, kept] = await messages_of(store, "s")
    assert (kept.content, kept.parent_id) == ("done", "first")


async def test_deleting_an_answer_deletes_its_response_too(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await take(store, "a", turn_of("a", "s"))
    await answer(store, "a")

    await store.sessions.delete_message("s", "answer-of-a")

    assert await store.responses.get(RequestId("a")) is None


async def test_turn_follows_the_newest_message_that_is_left(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("first"), message("second")])
    await store.sessions.delete_message("s", "second")

    await take(store, "a", turn_of("a", "s", expected_leaf_id="first"))

    assert await paths(store) == [["first", "message-of-a"]]


async def test_appended_items_follow_the_leaf_or_the_named_parent(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("a")])

    await store.sessions.append("s", [message("b"), message("c")])
    await store.sessions.append("s", [message("d")], "a")

    assert await paths(store) == [["a", "b", "c"], ["a", "d"]]
    with pytest.raises(NotFound):
        await store.sessions.append("gone", [message("e")])


async def test_stored_tree_is_read_as_it_was_written(store: Store) -> None:
    tree = [message("a"), message("b", "a"), message("c", "a"), message("d", "b")]

    await store.sessions.create(OWNER, "s", messages=tree, is_tree=True)

    assert await messages_of(store, "s") == tree
    outline = await store.sessions.outline("s")
    assert outline.branch() == ["a", "b", "d"]
    assert outline.branch("c") == ["a", "c"]


async def test_outline_tells_the_bytes_of_each_text(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("a", content="Grüße"), message("b")])
    await take(store, "a", turn_of("a", "s"))
    await answer(store, "a")

    outline = await store.sessions.outline("s")

    sizes = {each: outline.num_bytes(each) for each in outline.all()}
    texts = {each.message_id: each.content for each in await messages_of(store, "s")}
    assert sizes == {name: len(text.encode()) for name, text in texts.items()}
    assert sizes["a"] == 7


async def test_messages_are_read_in_the_order_asked_for_without_those_deleted_since(
    store: Store,
) -> None:
    await store.sessions.create(OWNER, "s", messages=[message(name) for name in "abcd"])
    outline = await store.sessions.outline("s")
    await store.sessions.delete_message("s", "b")

    found = await store.sessions.read("s", outline, ["d", "b", "a"])

    assert [each.message_id for each in found] == ["d", "a"]


def test_order_of_writing_is_that_of_entries() -> None:
    entries = {"c": "11-0", "b": "9-10", "a": "9-2"}

    outline = Outline({name: MessagePlace(entry, 1, None) for name, entry in entries.items()})

    assert outline.all() == ["a", "b", "c"]
    assert outline.leaf_id == "c"


def test_history_of_a_turn_ends_with_its_parent() -> None:
    parents = {"a": None, "b": "a", "c": "a"}
    places = {name: MessagePlace(f"1-{ord(name)}", 1, parents[name]) for name in parents}
    outline = Outline(places)

    assert outline.before_turn(None) == ["a", "c"]
    assert outline.before_turn("b") == ["a", "b"]
    assert outline.before_turn(ROOT) == []
    with pytest.raises(NotFound):
        outline.before_turn("elsewhere")


async def test_update_of_another_version_is_refused_and_changes_nothing(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await store.sessions.update("s", SessionChange(title="theirs", version=0))

    with pytest.raises(Conflict) as refusal:
        await store.sessions.update("s", SessionChange(title="mine", version=0))

    assert refusal.value.code == "version_conflict"
    session = await store.sessions.get("s")
    assert session is not None
    assert (session.title, session.version) == ("theirs", 1)


async def test_of_updates_at_once_with_one_version_one_wins(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    changes = (SessionChange(title=f"title {i}", version=0) for i in range(8))

    outcomes = await asyncio.gather(
        *(store.sessions.update("s", change) for change in changes), return_exceptions=True
    )

    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 7


async def test_turn_changes_no_version(store: Store) -> None:
    await store.sessions.create(OWNER, "s")

    await take(store, "a", turn_of("a", "s"))
    await answer(store, "a")

    session = await store.sessions.get("s")
    assert session is not None
    assert session.version == 0


async def test_archived_session_is_in_its_own_list_and_keeps_its_place(store: Store) -> None:
    for name in ("old", "new"):
        await store.sessions.create(
            OWNER, name, NewSession(updated_at=1_700_000_000 + (name == "new"))
        )

    await store.sessions.update("old", SessionChange(is_archived=True))

    shown, archived = (
        await store.sessions.list(OWNER, 9),
        await store.sessions.list(OWNER, 9, archived=True),
    )
    assert [session.session_id for session in shown] == ["new"]
    assert [session.session_id for session in archived] == ["old"]
    await store.sessions.update("old", SessionChange(is_archived=False))
    shown = await store.sessions.list(OWNER, 9)
    assert [session.session_id for session in shown] == ["new", "old"]


async def test_lists_of_two_users_are_apart(store: Store) -> None:
    await store.sessions.create(OWNER, "mine")
    await store.sessions.create(Owner(OWNER.tenant, "other"), "theirs")

    mine = await store.sessions.list(OWNER, 9)

    assert [session.session_id for session in mine] == ["mine"]
    with pytest.raises(NotFound):
        await store.sessions.list(OWNER, 9, before="theirs")


async def test_suggested_title_gives_way_to_the_users(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await take(store, "a", turn_of("a", "s"))

    assert await store.sessions.suggest_title("s", "By the model")
    await store.sessions.update("s", SessionChange(title="By the user"))
    assert not await store.sessions.suggest_title("s", "By the model again")

    session = await store.sessions.get("s")
    assert session is not None
    assert (session.title, session.title_source) == ("By the user", TitleSource.USER)
    assert not await store.sessions.suggest_title("gone", "x")


async def test_places_go_on_although_a_session_was_used_again_or_deleted(store: Store) -> None:
    for i, name in enumerate("dcba"):
        await store.sessions.create(OWNER, name, NewSession(updated_at=1_700_000_000 + i))
    first = await store.sessions.places(OWNER, 2)

    await store.sessions.append("b", [message("again")])
    rest = await store.sessions.places(OWNER, 9, first[-1])
    await store.sessions.delete("b")
    same = await store.sessions.places(OWNER, 9, replace(first[-1], session_id="b"))

    assert [place.session_id for place in first] == ["a", "b"]
    assert [place.session_id for place in rest] == ["c", "d"]
    assert same == rest
    assert first[0] == ListPlace(1_700_000_003_000, "a")


async def test_newest_messages_are_read_in_pieces(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message(name) for name in "abc"])

    first = await store.sessions.newest_messages("s", 2)
    rest = await store.sessions.newest_messages("s", 2, first[-1][0])

    assert [found.message_id for _, found in first + rest] == ["c", "b", "a"]


async def test_answer_that_ends_in_the_queue_keeps_its_place_in_the_tree(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[message("first"), message("second")])
    await take(store, "a", turn_of("a", "s", parent_id="first"))

    await store.queue.cancel(RequestId("a"))

    assert await paths(store) == [["first", "second"], ["first", "message-of-a", "answer-of-a"]]
    session = await store.sessions.get("s")
    assert session is not None
    assert session.active_response_ids == ()
    await check_invariants(store)


async def test_full_conversation_takes_no_more(store: Store) -> None:
    large = [message(f"m{number}", content="x" * 2**20) for number in range(16)]
    await store.sessions.create(OWNER, "s")

    await store.sessions.append("s", large[:15])
    with pytest.raises(Conflict) as refusal:
        await store.sessions.append("s", large[15:])

    assert refusal.value.code == "conversation_full"
    assert len(await messages_of(store, "s")) == 15
    await store.sessions.delete_message("s", "m0")
    await store.sessions.append("s", large[15:])


async def test_append_that_is_repeated_stores_its_messages_once(store: Store) -> None:
    await store.sessions.create(OWNER, "s")

    await store.sessions.append("s", [message("m1"), message("m2")])
    await store.sessions.append("s", [message("m1"), message("m2")])

    assert [each.message_id for each in await messages_of(store, "s")] == [
        "m1",
        "m2",
    ]
