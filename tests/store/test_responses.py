"""Response objects: how they are stored and forgotten."""

from dataclasses import replace

from store.store_helpers import (
    append,
    claim_names,
    deltas,
    ending,
    enqueue,
    make_record,
    make_request,
)

from chatserve.engine.api import RequestId
from chatserve.identity import Owner
from chatserve.store.connection import Store
from chatserve.store.responses import Abandonment

A = RequestId("a")


async def test_unknown_response_is_none(store: Store) -> None:
    assert await store.responses.get(A) is None
    assert not await store.responses.delete(A)


async def test_record_is_read_as_it_was_written(store: Store) -> None:
    record = replace(
        make_record("a"),
        tenant="org",
        user="ann",
        abandonment=Abandonment.GRACE,
        fingerprint="f1",
        generates=False,
    )
    await store.queue.enqueue(make_request("a"), record, max_queue=10)

    assert await store.responses.get(A) == record
    assert await store.responses.owner(A) == record.owner == Owner("org", "ann")
    assert await store.responses.owner(RequestId("b")) is None


async def test_delete_takes_the_log_of_an_ended_answer_along(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await append(store, ending("a", 1, 2))

    assert await store.responses.delete(A)

    assert await store.responses.get(A) is None
    assert await store.log.read(A) == []


async def test_delete_in_flight_leaves_the_log_to_its_writer(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")

    assert await store.responses.delete(A)
    await append(store, deltas("a", 1, 2, "more"))

    assert await store.responses.get(A) is None
    assert [entry.sequence_number for entry in await store.log.read(A)] == [0, 1, 2]


async def test_create_that_is_repeated_after_its_deletion_begins_anew(store: Store) -> None:
    """The log of an answer that was deleted in flight outlives it, and blocked its successor."""
    await enqueue(store, "a")
    await claim_names(store, "w")
    await store.responses.delete(A)
    await store.queue.cancel(A)
    await append(store, ending("a", 1, 2))

    await enqueue(store, "a")

    assert await claim_names(store, "w") == ["a"]
    assert [entry.sequence_number for entry in await store.log.read(A)] == [0, 1]


async def test_record_knows_the_number_of_its_last_event(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")

    await append(store, deltas("a", 1, 2, "x", "y"), ending("a", 1, 4))

    record = await store.responses.get(A)
    assert record is not None
    assert record.last_sequence == (await store.log.read(A))[-1].sequence_number == 4
