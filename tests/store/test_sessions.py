"""Sessions: create, read, list, change, delete."""

import asyncio
from dataclasses import replace

import pytest
from store.store_helpers import (
    OWNER,
    append,
    claim_names,
    ending,
    enqueue,
    make_message,
    make_record,
    make_request,
    make_turn,
    messages_of,
)

from chatserve.engine.api import FinishReason, Outcome, RequestId, Usage
from chatserve.errors import NotFound
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.sessions import (
    Deleted,
    Message,
    MessageStatus,
    NewSession,
    Session,
    SessionChange,
    SessionTurn,
    TitleSource,
)


async def create_in_order(store: Store, *names: str) -> None:
    """Create sessions whose last use is a second apart, the first name's longest ago."""
    for age, name in enumerate(reversed(names)):
        await store.sessions.create(OWNER, name)
        await store.commands.call(
            "ZADD",
            keys.FIRST.key(keys.SESSIONS + keys.owner(*OWNER)),
            1_700_000_000_000 - age * 1000,
            name,
        )


async def listed(store: Store, limit: int, before: str | None = None) -> list[str]:
    return [session.session_id for session in await store.sessions.list(OWNER, limit, before)]


async def test_session_is_read_as_it_was_created(store: Store) -> None:
    answer = Message(
        "m",
        "assistant",
        "An answer",
        1_700_000_000,
        RequestId("r"),
        MessageStatus.FAILED,
        (5, 6),
        Outcome(FinishReason.ERROR, Usage(1, 2, 3), error_code="x", error_message="y"),
    )
    messages = [make_message("system"), make_message("developer"), answer]

    created = await store.sessions.create(
        OWNER, "s", NewSession("Ünïcode 題", TitleSource.USER, {"k": "v"}), messages
    )

    assert await store.sessions.get("s") == created
    assert await messages_of(store, "s") == [
        messages[0],
        replace(messages[1], parent_id=messages[0].message_id),
        replace(messages[2], parent_id=messages[1].message_id),
    ]
    assert created == Session(
        session_id="s",
        owner=OWNER,
        title="Ünïcode 題",
        created_at=created.created_at,
        updated_at=created.updated_at,
        metadata={"k": "v"},
        active_response_ids=(),
        num_messages=3,
        title_source=TitleSource.USER,
    )
    assert created.created_at == created.updated_at > 1_700_000_000


async def test_unknown_session_has_nothing(store: Store) -> None:
    assert await store.sessions.get("s") is None
    assert await messages_of(store, "s") == []
    assert await store.sessions.update("s", SessionChange(title="x")) is None
    assert not await store.sessions.delete("s")


async def test_repeated_create_changes_nothing(store: Store) -> None:
    first = await store.sessions.create(
        OWNER, "s", NewSession("first"), messages=[make_message("system")]
    )

    second = await store.sessions.create(
        OWNER, "s", NewSession("second"), messages=[make_message("system")]
    )

    assert second == first


async def test_list_begins_with_the_most_recently_used(store: Store) -> None:
    await create_in_order(store, "old", "middle", "new")

    assert await listed(store, 10) == ["new", "middle", "old"]


async def test_pages_of_the_list_join_without_gap_or_overlap(store: Store) -> None:
    names = [f"s{i}" for i in range(7)]
    await create_in_order(store, *names)

    pages = [await listed(store, 3)]
    while len(pages[-1]) == 3:
        pages.append(await listed(store, 3, before=pages[-1][-1]))

    assert [name for page in pages for name in page] == names[::-1]


async def test_list_before_a_deleted_session_says_so(store: Store) -> None:
    with pytest.raises(NotFound) as refusal:
        await store.sessions.list(OWNER, 3, before="gone")

    assert refusal.value.param == "before"


async def test_update_sets_only_the_given_fields(store: Store) -> None:
    created = await store.sessions.create(OWNER, "s", NewSession("old", metadata={"k": "v"}))

    renamed = await store.sessions.update("s", SessionChange(title="new"))
    marked = await store.sessions.update("s", SessionChange(metadata={"other": "w"}))
    unchanged = await store.sessions.update("s", SessionChange())

    assert renamed is not None
    assert (renamed.title, renamed.metadata) == ("new", {"k": "v"})
    assert marked is not None
    assert (marked.title, marked.metadata) == ("new", {"other": "w"})
    assert unchanged == marked
    assert (created.version, renamed.version, marked.version) == (0, 1, 2)
    assert marked.updated_at == created.updated_at


async def test_renaming_while_an_answer_streams_survives_its_end(store: Store) -> None:
    """Saving the whole session at the end of an answer used to bring the old title back."""
    await store.sessions.create(OWNER, "s", NewSession("old"))
    await enqueue(store, "a", session_id="s")
    await claim_names(store, "w")

    await store.sessions.update("s", SessionChange(title="new"))
    await append(store, ending("a", 1, 2))

    session = await store.sessions.get("s")
    assert session is not None
    assert session.title == "new"


async def test_untitled_session_is_named_by_its_first_turn(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    text = "  Why is\nthe sky blue,\tdear friend of mine, and why does the sea look like it?"

    await store.queue.enqueue(
        make_request("a"),
        make_record("a", session_id="s"),
        max_queue=1,
        turn=make_turn("s", text),
    )

    session = await store.sessions.get("s")
    assert session is not None
    assert session.title == "Why is the sky blue, dear friend of mine, and why does the…"
    assert session.title_source is TitleSource.WORDS


async def test_title_of_a_session_is_not_overwritten_by_a_turn(store: Store) -> None:
    await store.sessions.create(OWNER, "s", NewSession("Mine"))

    await enqueue(store, "a", session_id="s")

    session = await store.sessions.get("s")
    assert session is not None
    assert session.title == "Mine"


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        ((), ""),
        ((make_message("system", "Be brief"),), ""),
        ((make_message("user", ""),), ""),
        ((make_message("system", "Be brief"), make_message("user", "Hello")), "Hello"),
        ((make_message("user", "x" * 1000),), "x" * 59 + "…"),
    ],
)
def test_title_is_the_start_of_the_first_user_message(
    messages: tuple[Message, ...], title: str
) -> None:
    assert SessionTurn("s", messages).title == title


async def test_delete_takes_messages_and_responses_along(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await store.sessions.create(OWNER, "other")
    await enqueue(store, "a", session_id="s")
    await enqueue(store, "b", session_id="other")
    await claim_names(store, "w")
    await append(store, ending("a", 1, 2), ending("b", 1, 2))

    assert await store.sessions.delete("s")

    assert await store.sessions.get("s") is None
    assert await messages_of(store, "s") == []
    assert await store.responses.get(RequestId("a")) is None
    assert await store.log.read(RequestId("a")) == []
    assert await store.responses.get(RequestId("b")) is not None
    assert await listed(store, 10) == ["other"]


async def test_two_tabs_that_rename_and_send_at_once_both_succeed(store: Store) -> None:
    await store.sessions.create(OWNER, "s")

    await asyncio.gather(
        store.sessions.update("s", SessionChange(title="named")),
        enqueue(store, "a", session_id="s"),
        store.sessions.update("s", SessionChange(metadata={"tab": "2"})),
    )

    session = await store.sessions.get("s")
    assert session is not None
    assert (session.title, session.metadata) == ("named", {"tab": "2"})
    assert (session.active_response_id, session.num_messages) == ("a", 1)


async def test_delete_tells_the_answer_that_is_in_flight_at_that_moment(store: Store) -> None:
    """An answer that began after the deletion had looked was left running."""
    await store.sessions.create(OWNER, "s")
    await store.sessions.create(OWNER, "idle")
    await enqueue(store, "a", session_id="s")

    busy, idle = await store.sessions.delete("s"), await store.sessions.delete("idle")

    assert busy == Deleted((RequestId("a"),))
    assert idle == Deleted(())
    assert await store.sessions.delete("s") is None


async def test_hidden_sessions_are_shown_all_or_none(store: Store) -> None:
    ids = ["conv_0a", "conv_0b"]
    for session_id in ids:
        await store.sessions.create(OWNER, session_id, is_hidden=True)
    hidden = await store.sessions.list(OWNER, 10)

    with pytest.raises(NotFound):
        await store.sessions.show(OWNER, [*ids, "conv_0gone"])
    still_hidden = await store.sessions.list(OWNER, 10)
    for _ in range(2):  # the reply to the first may be lost
        await store.sessions.show(OWNER, ids)

    assert hidden == still_hidden == []
    assert sorted(each.session_id for each in await store.sessions.list(OWNER, 10)) == ids
