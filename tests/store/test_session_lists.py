"""In which lists a session stands, whatever becomes of it."""

import pytest

from chatserve.identity import Owner
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.sessions import Message, NewSession, SessionChange

OWNER = Owner("acme", "ann")
A, B, C = (f"conv_{keys.digit_of(OWNER.tenant):x}{letter}" for letter in "abc")


async def listed(store: Store, *, pinned: bool = False) -> list[str]:
    found = await store.sessions.list(OWNER, 10, pinned=pinned)
    return [session.session_id for session in found]


async def test_pinned_sessions_are_listed_alone_and_among_the_others(store: Store) -> None:
    for name in (A, B, C):
        await store.sessions.create(OWNER, name)
    await store.sessions.update(A, SessionChange(is_pinned=True))
    await store.sessions.update(C, SessionChange(is_pinned=True))

    assert set(await listed(store, pinned=True)) == {A, C}
    assert set(await listed(store)) == {A, B, C}


async def test_pinned_sessions_come_in_the_order_of_use(store: Store) -> None:
    for second, name in enumerate((A, B), start=1):
        await store.sessions.create(OWNER, name, NewSession(is_pinned=True, updated_at=second))
    before = await listed(store, pinned=True)

    await store.sessions.append(A, [Message("msg_1", "user", "again", 0)])

    assert before == [B, A]
    assert await listed(store, pinned=True) == [A, B]


@pytest.mark.parametrize(
    "change", [SessionChange(is_pinned=False), SessionChange(is_archived=True), None]
)
async def test_session_leaves_the_pinned_ones(store: Store, change: SessionChange | None) -> None:
    await store.sessions.create(OWNER, A, NewSession(is_pinned=True))

    if change is None:
        await store.sessions.delete(A)
    else:
        await store.sessions.update(A, change)

    key = store.partitions.of_tenant("acme").key(keys.PINNED + "acme/ann")
    assert await store.commands.call("EXISTS", key) == 0


async def test_session_that_is_taken_out_of_the_archive_is_pinned_again(store: Store) -> None:
    await store.sessions.create(OWNER, A, NewSession(is_pinned=True, is_archived=True))
    archived = await listed(store, pinned=True)

    await store.sessions.update(A, SessionChange(is_archived=False))

    assert archived == []
    assert await listed(store, pinned=True) == [A]
