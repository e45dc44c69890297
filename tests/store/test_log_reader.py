"""Following logs: replay, live tails, slow and vanishing consumers."""

import asyncio
from contextlib import aclosing

import pytest
from store.log_reading import collect, start, take
from store.store_helpers import (
    append,
    claim_names,
    deltas,
    ending,
    enqueue,
    eventually,
)

from chatserve.engine.api import EventKind, RequestId
from chatserve.errors import NotFound, StoreError
from chatserve.store.connection import Store
from chatserve.store.log_feed import LogFeed
from chatserve.store.log_follower import BUFFER_ENTRIES
from chatserve.store.log_reader import LogReader
from chatserve.store.response_log import LogEntry

A = RequestId("a")


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
