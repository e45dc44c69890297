"""Following logs that have lost something: deleted, cut and written again, or not copied."""

import asyncio
from typing import Any

import pytest
from store.log_reading import collect, read_into, start
from store.store_helpers import (
    append,
    claim_names,
    deltas,
    ending,
    eventually,
    expire_leases,
)

from chatserve.errors import NotFound
from chatserve.store.connection import Store
from chatserve.store.log_reader import LogReader

CUT_AFTER_FIRST_DELTA = """
local entries = redis.call('XRANGE', 'cs:{0}:log:a', '-', '3-0')
redis.call('DEL', 'cs:{0}:log:a')
for _, entry in ipairs(entries) do
  redis.call('XADD', 'cs:{0}:log:a', entry[1], unpack(entry[2]))
end
redis.call('HSET', 'cs:{0}:request:a', 'next', 3)
"""


async def cut(store: Store) -> None:
    """Make log and request as they were after the first delta, and the owner die with them."""
    await store.commands.call("EVAL", CUT_AFTER_FIRST_DELTA, 0)
    await expire_leases(store, "a")
    assert await store.queue.reap() == ["a"]
    assert await claim_names(store, "w") == ["a"]


async def test_deleted_log_ends_its_followers(store: Store) -> None:
    """No entry will ever say that a log is gone: its followers used to wait for ever."""
    reader = LogReader(store, audit_s=0)
    reader.start()
    await start(store, "a", "b")
    read: list[tuple[int, str]] = []
    following = asyncio.create_task(read_into(read, reader, "a"))
    await eventually(lambda: len(read) == 2)

    await store.commands.call("DEL", "cs:{0}:log:a")
    other = asyncio.create_task(collect(reader, "b"))

    async with asyncio.timeout(20):
        with pytest.raises(NotFound):
            await following
    await append(store, ending("b", 1, 2))
    assert await other == [0, 1, 2]
    await reader.aclose()


async def test_log_that_a_crash_has_cut_is_read_again_from_its_beginning(store: Store) -> None:
    """A follower that had read further used to get no last event."""
    reader = LogReader(store, audit_s=0)
    reader.start()
    await start(store, "a")
    await append(store, deltas("a", 1, 2, "x", "y", "z"))
    read: list[tuple[int, str]] = []
    following = asyncio.create_task(read_into(read, reader, "a"))
    await eventually(lambda: len(read) == 5)

    await cut(store)
    await append(store, ending("a", 2, 3))

    async with asyncio.timeout(20):
        await following
    assert read[5:] == [(0, ""), (1, ""), (2, "x"), (3, "")]
    await reader.aclose()


async def test_log_that_was_cut_and_is_longer_again_is_read_from_its_beginning(
    store: Store, reader: LogReader
) -> None:
    """A follower used to go on from where it was, without what had got the lost numbers."""
    await start(store, "a")
    read: list[tuple[int, str]] = []
    following = asyncio.create_task(read_into(read, reader, "a"))
    await eventually(lambda: len(read) == 2)
    await append(store, deltas("a", 1, 2, "x", "y", "z"))
    await eventually(lambda: len(read) == 5)

    await cut(store)
    await append(store, deltas("a", 2, 3, *"other"), ending("a", 2, 8))

    async with asyncio.timeout(20):
        await following
    again = read[5:]
    assert [number for number, _ in again] == list(range(9))
    assert "".join(text for _, text in again) == "xother"


async def test_cut_is_noticed_by_a_follower_that_has_read_pages_only(
    store: Store, reader: LogReader
) -> None:
    """What the feed brought first was taken for an entry that it had read."""
    await start(store, "a")
    await append(store, deltas("a", 1, 2, "x", "y", "z"))
    read: list[tuple[int, str]] = []
    following = asyncio.create_task(read_into(read, reader, "a"))
    await eventually(lambda: len(read) == 5)

    await cut(store)
    await append(store, deltas("a", 2, 3, *"other"), ending("a", 2, 8))

    async with asyncio.timeout(5):
        await following
    assert "".join(text for _, text in read[5:]) == "xother"


async def test_log_that_is_no_longer_copied_is_found_by_an_audit(store: Store) -> None:
    """A store that lost its last second may have lost who follows, too."""
    reader = LogReader(store, audit_s=0)
    reader.start()
    await start(store, "a")
    read: list[tuple[int, str]] = []
    following = asyncio.create_task(read_into(read, reader, "a"))
    await eventually(lambda: len(read) == 2)
    await store.commands.call("HDEL", "cs:{0}:request:a", "feeds")

    await append(store, deltas("a", 1, 2, "x"), ending("a", 1, 3))
    await start(store, "b")
    other = asyncio.create_task(collect(reader, "b"))
    for number in range(2, 50):  # each is news, and an audit follows
        await append(store, deltas("b", 1, number, "x"))

    async with asyncio.timeout(20):
        await following
    assert [number for number, _ in read] == [0, 1, 2, 3]
    other.cancel()
    await reader.aclose()


async def test_page_that_is_gone_before_it_is_read_is_looked_for_again(
    store: Store, reader: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer in flight whose log had just become shorter used to be not found."""
    await start(store, "a")
    await append(store, deltas("a", 1, 2, "x", "y", "z"))
    call, has_cut = store.commands.call, False

    async def cut_before_the_page(name: str, *arguments: Any) -> Any:
        nonlocal has_cut
        if name == "XRANGE" and not has_cut:
            has_cut = True
            await call("EVAL", CUT_AFTER_FIRST_DELTA, 0)
        return await call(name, *arguments)

    monkeypatch.setattr(store.commands, "call", cut_before_the_page)
    following = asyncio.create_task(collect(reader, "a", after=2))
    await eventually(lambda: has_cut)
    await append(store, ending("a", 1, 3))

    async with asyncio.timeout(20):
        assert await following == [3]
