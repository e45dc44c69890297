"""Following logs: replay, live tails, slow and vanishing consumers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from store.store_helpers import (
    append,
    claim_names,
    deltas,
    ending,
    enqueue,
    eventually,
    expire_leases,
)

from chatserve.engine.api import EventKind, RequestId
from chatserve.errors import NotFound, StoreError
from chatserve.store.connection import Store
from chatserve.store.log_feed import LogFeed
from chatserve.store.log_follower import BUFFER_ENTRIES
from chatserve.store.log_reader import LogReader
from chatserve.store.response_log import LogEntry

A = RequestId("a")

CUT_AFTER_FIRST_DELTA = """
local entries = redis.call('XRANGE', 'cs:{0}:log:a', '-', '3-0')
redis.call('DEL', 'cs:{0}:log:a')
for _, entry in ipairs(entries) do
  redis.call('XADD', 'cs:{0}:log:a', entry[1], unpack(entry[2]))
end
redis.call('HSET', 'cs:{0}:request:a', 'next', 3)
"""


async def start(store: Store, *names: str) -> None:
    await enqueue(store, *names)
    await claim_names(store, "w", limit=len(names))


async def collect(reader: LogReader, name: str, after: int = -1) -> list[int]:
    """Follow a log to its end and return the numbers of its entries."""
    async with aclosing(reader.follow(RequestId(name), after)) as entries:
        return [entry.sequence_number async for entry in entries]


async def read_into(texts: list[tuple[int, str]], reader: LogReader, name: str) -> None:
    """Follow a log to its end and add the number and text of each entry."""
    async with aclosing(reader.follow(RequestId(name))) as entries:
        async for entry in entries:
            texts.append((entry.sequence_number, entry.event.text))


async def cut(store: Store) -> None:
    """Make log and request as they were after the first delta, and the owner die with them."""
    await store.commands.call("EVAL", CUT_AFTER_FIRST_DELTA, 0)
    await expire_leases(store, "a")
    assert await store.queue.reap() == ["a"]
    assert await claim_names(store, "w") == ["a"]


async def take(entries: AsyncGenerator[LogEntry, None], count: int) -> list[int]:
    return [(await anext(entries)).sequence_number for _ in range(count)]


async def test_ended_log_is_replayed(store: Store, reader: LogReader) -> None:
    await start(store, "a")
    await append(store, deltas("a", 1, 2, "x", "y"))
    await append(store, ending("a", 1, 4))

    assert await collect(reader, "a") == [0, 1, 2, 3, 4]
    assert await collect(reader, "a", after=2) == [3, 4]
    assert reader.num_logs == 0


async def test_resume_after_the_last_event_ends_at_once(store: Store, reader: LogReader) -> None:
    await start(store, "a")
    await append(store, ending("a", 1, 2))

    assert await collect(reader, "a", after=2) == []


async def test_resume_after_a_number_not_reached_yields_what_is_new(
    store: Store, reader: LogReader
) -> None:
    """Such a follower used to wait for ever, even after the end."""
    await start(store, "a")
    following = asyncio.create_task(collect(reader, "a", after=999))
    await eventually(lambda: reader.num_logs == 1)

    await append(store, deltas("a", 1, 2, "x"), ending("a", 1, 3))

    async with asyncio.timeout(10):
        assert await following == [2, 3]
    assert await collect(reader, "a", after=999) == []


async def test_unknown_log_is_not_found(reader: LogReader) -> None:
    with pytest.raises(NotFound) as refusal:
        await collect(reader, "a")

    assert refusal.value.code == "response_not_found"


async def test_long_log_is_replayed_page_by_page(store: Store, reader: LogReader) -> None:
    await start(store, "a")
    await append(store, deltas("a", 1, 2, *("x" for _ in range(1000))))
    await append(store, ending("a", 1, 1002))

    assert await collect(reader, "a") == list(range(1003))


async def test_live_log_is_followed_to_its_end(store: Store, reader: LogReader) -> None:
    await start(store, "a")
    following = asyncio.create_task(collect(reader, "a"))
    await eventually(lambda: reader.num_logs == 1)

    for i in range(50):
        await append(store, deltas("a", 1, 2 + i, "x"))
    await append(store, ending("a", 1, 52))

    async with asyncio.timeout(10):
        assert await following == list(range(53))
    assert reader.num_logs == 0


async def test_follow_right_after_enqueue_misses_nothing(store: Store, reader: LogReader) -> None:
    """Subscribing while the first events were written used to lose or double them."""
    for i in range(30):
        name = f"r{i}"
        await enqueue(store, name)
        following = asyncio.create_task(collect(reader, name))
        await claim_names(store, "w")
        await append(store, deltas(name, 1, 2, "x"))
        await append(store, deltas(name, 1, 3, "y"), ending(name, 1, 4))

        async with asyncio.timeout(10):
            assert await following == [0, 1, 2, 3, 4]


async def test_two_hundred_logs_are_followed_at_once(store: Store, reader: LogReader) -> None:
    names = [f"r{i}" for i in range(200)]
    await start(store, *names)
    following = [asyncio.create_task(collect(reader, name)) for name in names]
    await eventually(lambda: reader.num_logs == 200)

    for i in range(10):
        await append(store, *(deltas(name, 1, 2 + i, "x") for name in names))
    await append(store, *(ending(name, 1, 12) for name in names))

    async with asyncio.timeout(20):
        assert await asyncio.gather(*following) == [list(range(13))] * 200
    assert reader.num_logs == 0


async def test_followers_at_different_places_all_get_everything(
    store: Store, reader: LogReader
) -> None:
    await start(store, "a")
    followers = [asyncio.create_task(collect(reader, "a"))]
    for i in range(40):
        await append(store, deltas("a", 1, 2 + i, "x"))
        followers.append(asyncio.create_task(collect(reader, "a", after=i)))
        await asyncio.sleep(0)
    await append(store, ending("a", 1, 42))

    async with asyncio.timeout(10):
        numbers = await asyncio.gather(*followers)
    assert numbers == [list(range(43)), *(list(range(i + 1, 43)) for i in range(40))]


async def test_consumer_that_stops_is_left_out_until_it_drains(
    store: Store, reader: LogReader
) -> None:
    total = 3 * BUFFER_ENTRIES
    await start(store, "a")
    async with aclosing(reader.follow(A)) as slow:
        taken = await take(slow, 2)
        next_entry = asyncio.create_task(take(slow, 1))
        await eventually(lambda: reader.num_logs == 1)

        await append(store, deltas("a", 1, 2, *("x" for _ in range(total))))
        await eventually(lambda: reader.num_logs == 0)
        await append(store, ending("a", 1, 2 + total))
        taken += await next_entry
        taken += [entry.sequence_number async for entry in slow]

    assert taken == list(range(total + 3))


async def test_slow_consumer_does_not_hinder_another_of_the_same_log(
    store: Store, reader: LogReader
) -> None:
    total = 3 * BUFFER_ENTRIES
    await start(store, "a")
    async with aclosing(reader.follow(A)) as slow:
        await take(slow, 2)
        next_entry = asyncio.create_task(take(slow, 1))
        fast = asyncio.create_task(collect(reader, "a"))
        await eventually(lambda: reader.num_logs == 1)
        for i in range(0, total, 32):
            await append(store, deltas("a", 1, 2 + i, *("x" for _ in range(32))))
        await append(store, ending("a", 1, 2 + total))

        async with asyncio.timeout(10):
            assert await fast == list(range(total + 3))
        await next_entry


async def test_closed_follower_gives_up_its_place(store: Store, reader: LogReader) -> None:
    await start(store, "a")
    entries = reader.follow(A)
    await take(entries, 2)
    waiting = asyncio.create_task(take(entries, 1))
    await asyncio.wait({waiting}, timeout=0.05)  # it waits now: nothing comes

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert reader.num_logs == 0


async def test_cancel_storm_leaks_no_place_and_no_connection(
    store: Store, reader: LogReader
) -> None:
    names = [f"r{i}" for i in range(20)]
    await start(store, *names)
    survivors = [asyncio.create_task(collect(reader, name)) for name in names]
    for storm in range(15):
        victims = [asyncio.create_task(collect(reader, name)) for name in names]
        for _ in range(storm):
            await asyncio.sleep(0)
        for victim in victims:
            victim.cancel()
        results = await asyncio.gather(*victims, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)

    await append(store, *(ending(name, 1, 2) for name in names))

    async with asyncio.timeout(10):
        assert await asyncio.gather(*survivors) == [[0, 1, 2]] * 20
    assert reader.num_logs == 0
    clients = await store.commands.call("CLIENT LIST")
    assert len(clients.splitlines()) <= 24


async def test_killed_connections_are_opened_again_without_a_gap(
    store: Store, reader: LogReader
) -> None:
    await start(store, "a")
    following = asyncio.create_task(collect(reader, "a"))
    await eventually(lambda: reader.num_logs == 1)

    for i in range(10):
        await store.commands.call("CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
        await append(store, deltas("a", 1, 2 + i, "x"))
    await append(store, ending("a", 1, 12))

    async with asyncio.timeout(20):
        assert await following == list(range(13))


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


async def test_answer_that_is_cancelled_in_the_queue_ends_its_followers(
    store: Store, reader: LogReader
) -> None:
    await enqueue(store, "a")
    entries = reader.follow(A)
    await take(entries, 2)

    await store.queue.cancel(A)

    async with asyncio.timeout(10):
        last = await anext(entries)
        assert last.event.kind is EventKind.INCOMPLETE
        assert [entry async for entry in entries] == []


async def test_closing_the_reader_ends_its_followers(store: Store) -> None:
    reader = LogReader(store)
    reader.start()
    await start(store, "a")
    following = asyncio.create_task(collect(reader, "a"))
    await eventually(lambda: reader.num_logs == 1)

    await reader.aclose()

    with pytest.raises(StoreError):
        await following
    with pytest.raises(StoreError):
        await collect(reader, "a")
    assert reader.num_logs == 0


async def test_reader_closed_right_after_its_start_lets_nobody_wait(store: Store) -> None:
    reader = LogReader(store)
    reader.start()
    await start(store, "a")
    other = LogReader(store)
    other.start()

    await asyncio.gather(reader.aclose(), other.aclose())

    for closed in (reader, other):
        with pytest.raises(StoreError):
            await collect(closed, "a")


async def test_reader_closed_before_its_feed_is_there_lets_nobody_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who had begun to follow before the feed was there used to wait for ever."""
    renewing = asyncio.Event()

    async def renew_never(_: LogFeed) -> bool:
        renewing.set()
        await asyncio.Event().wait()
        return True

    monkeypatch.setattr(LogFeed, "renew", renew_never)
    reader = LogReader(store)
    reader.start()
    await start(store, "a")
    following = asyncio.create_task(collect(reader, "a"))
    await renewing.wait()

    await reader.aclose()

    async with asyncio.timeout(10):
        with pytest.raises(StoreError):
            await following


async def test_follower_stops_asking_a_store_that_is_away_once_the_reader_is_dismissed(
    store: Store, reader: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = asyncio.Event()

    async def fail(_: LogFeed, request_id: RequestId) -> LogEntry | None:
        asking.set()
        raise StoreError("away")

    monkeypatch.setattr(LogFeed, "add", fail)
    following = asyncio.create_task(collect(reader, "a"))
    await asking.wait()

    reader.dismiss(NotFound("over"))

    async with asyncio.timeout(10):
        with pytest.raises(NotFound):
            await following
