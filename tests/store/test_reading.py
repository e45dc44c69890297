"""Whose readers keep an answer that must not go on without any."""

from store.store_helpers import (
    MODEL,
    append,
    claim_names,
    ending,
    enqueue,
    make_record,
    make_request,
)

from chatserve.engine.api import RequestId
from chatserve.store.connection import Store
from chatserve.store.queue import CancelOutcome, Cursor

A = RequestId("a")


async def start_read_by(store: Store, reader: str) -> None:
    await store.queue.enqueue(make_request("a"), make_record("a"), max_queue=10, reader=reader)


async def is_in_flight(store: Store) -> bool:
    return await store.queue.cancel(A) is not CancelOutcome.ALREADY_FINISHED


async def test_gateway_that_started_an_answer_stops_it_when_it_leaves(store: Store) -> None:
    await start_read_by(store, "one")

    assert not await store.reading.leave(A, reader="one")

    assert not await is_in_flight(store)


async def test_answer_goes_on_until_the_last_gateway_leaves(store: Store) -> None:
    await start_read_by(store, "one")
    await store.reading.join(A, reader="two")

    assert await store.reading.leave(A, reader="one")
    assert await store.reading.leave(A, reader="one")
    assert not await store.reading.leave(A, reader="two")

    assert not await is_in_flight(store)


async def test_running_answer_is_stopped_by_its_worker(store: Store) -> None:
    await start_read_by(store, "one")
    await claim_names(store, "w")

    assert not await store.reading.leave(A, reader="one")

    wakeup = await store.queue.wait_for_work("w", MODEL, Cursor(), block_ms=1000)
    assert wakeup.cancelled == (A,)


async def test_mark_on_an_answer_that_has_ended_leaves_nothing(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await append(store, ending("a", 1, 2))

    await store.reading.join(A, reader="two")
    await store.reading.leave(A, reader="two")

    assert await store.queue.cancel(A) is CancelOutcome.ALREADY_FINISHED


async def test_mark_on_what_never_was_leaves_nothing(store: Store) -> None:
    await store.reading.join(A, reader="two")
    await store.reading.leave(A, reader="two")

    assert await store.queue.cancel(A) is CancelOutcome.NOT_FOUND
