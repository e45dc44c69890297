"""Leases that are renewed, handed back, lost and taken over; cancelling in every state."""

import pytest
from store.store_helpers import (
    LEASE_MS,
    MODEL,
    OWNER,
    append,
    check_invariants,
    claim_names,
    delta,
    deltas,
    ending,
    enqueue,
    expire_leases,
    messages_of,
)

from chatserve.engine.api import EventKind, FinishReason, LogEvent, RequestId, Usage
from chatserve.store.connection import Store
from chatserve.store.queue import MAX_TAKEOVERS, CancelOutcome, Cursor
from chatserve.store.response_log import Append
from chatserve.store.responses import ResponseStatus
from chatserve.store.sessions import MessageStatus

A = RequestId("a")


async def test_extend_returns_what_is_not_owned(store: Store) -> None:
    await enqueue(store, "mine", "other's")
    await claim_names(store, "w", limit=1)
    await claim_names(store, "v", limit=1)
    held = [RequestId("mine"), RequestId("other's"), RequestId("unknown")]

    lost = await store.queue.extend_leases("w", held, LEASE_MS)

    assert lost == ["other's", "unknown"]


async def test_extended_lease_is_not_reaped(store: Store) -> None:
    await enqueue(store, "a", "b")
    await store.queue.claim("w", MODEL, 2, 0)

    await store.queue.extend_leases("w", [A], LEASE_MS)

    assert await store.queue.reap() == ["b"]


async def test_lease_that_has_not_run_out_is_not_reaped(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")

    assert await store.queue.reap() == []


async def test_release_puts_requests_back_to_their_places(store: Store) -> None:
    await enqueue(store, "a", "b", "c")
    await claim_names(store, "w", limit=2)

    await store.queue.release("w", [A, RequestId("b")])

    await check_invariants(store)
    assert await claim_names(store, "v") == ["a", "b", "c"]


async def test_release_leaves_requests_of_others_alone(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")

    await store.queue.release("v", [A])

    assert await store.queue.depth(MODEL) == 0
    assert await store.queue.extend_leases("w", [A], LEASE_MS) == []


async def test_release_does_not_count_as_a_lost_worker(store: Store) -> None:
    await enqueue(store, "a")

    for _ in range(MAX_TAKEOVERS + 2):
        assert await claim_names(store, "w") == ["a"]
        await store.queue.release("w", [A])

    assert await claim_names(store, "w") == ["a"]


async def test_release_rings_the_bell(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    seen = await store.queue.wait_for_work("v", MODEL, Cursor(), 60_000)

    await store.queue.release("w", [A])

    assert (await store.queue.wait_for_work("v", MODEL, seen.cursor, 60_000)).new_work


async def test_taken_over_request_continues_the_log_of_its_first_worker(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await append(store, deltas("a", 1, 2, "Hel", "lo"))
    await expire_leases(store, "a")
    await store.queue.reap()

    [claim] = await store.queue.claim("v", MODEL, 1, LEASE_MS)
    await append(store, ending("a", claim.epoch, claim.next_sequence, "Hello"))

    assert (claim.epoch, claim.next_sequence) == (2, 4)
    assert (claim.logged_text, claim.logged_token_ids) == ("Hello", (2, 3))
    numbers = [entry.sequence_number for entry in await store.log.read(A)]
    assert numbers == [0, 1, 2, 3, 4]


async def test_reaped_request_goes_before_those_that_came_after_it(store: Store) -> None:
    await enqueue(store, "a", "b", "c", "d")
    await claim_names(store, "w", limit=2)
    await expire_leases(store, "a", "b")

    reaped = await store.queue.reap()

    assert reaped == ["a", "b"]
    await check_invariants(store)
    assert await claim_names(store, "v") == ["a", "b", "c", "d"]


async def test_worker_that_lost_its_request_can_no_longer_write(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await expire_leases(store, "a")
    await store.queue.reap()

    while_queued = await store.log.append([deltas("a", 1, 2, "late")])
    await claim_names(store, "v")
    while_taken_over = await store.log.append([deltas("a", 1, 2, "late"), ending("a", 1, 2)])

    assert while_queued + while_taken_over == [False, False, False]
    assert len(await store.log.read(A)) == 2
    await check_invariants(store)


async def test_request_fails_after_too_many_lost_workers(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    for _ in range(MAX_TAKEOVERS):
        await claim_names(store, "w")
        await expire_leases(store, "a")
        assert await store.queue.reap() == ["a"]
    await claim_names(store, "w")
    await append(store, deltas("a", MAX_TAKEOVERS + 1, 2, "par", "tial"))
    await expire_leases(store, "a")

    assert await store.queue.reap() == ["a"]

    last = (await store.log.read(A))[-1]
    record = await store.responses.get(A)
    assert last.sequence_number == 4
    assert last.event.kind is EventKind.FAILED
    assert last.event.outcome is not None
    assert last.event.outcome.finish_reason is FinishReason.ERROR
    assert last.event.outcome.error_code == "worker_lost"
    assert "worker" in (last.event.outcome.error_message or "")
    assert last.event.outcome.usage == Usage(input_tokens=3, output_tokens=2)
    assert record is not None
    assert (record.status, record.output_text) == (ResponseStatus.FAILED, "partial")
    assert record.outcome == last.event.outcome
    answer = (await messages_of(store, "s"))[-1]
    assert (answer.status, answer.content) == (MessageStatus.FAILED, "partial")
    assert await store.queue.depth(MODEL) == 0
    await check_invariants(store)


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_answer_that_the_store_ends_is_closed_as_a_worker_closes_it(
    store: Store, *, is_cancelled: bool
) -> None:
    """Such an answer used to end right after a delta, with its part and item still open."""
    await enqueue(store, "a")
    for _ in range(MAX_TAKEOVERS):
        await store.queue.claim("w", MODEL, 1, 0)
        await store.queue.reap()
    await claim_names(store, "w")
    opening = (EventKind.IN_PROGRESS, EventKind.ITEM_ADDED, EventKind.PART_ADDED)
    events = (*map(LogEvent, opening), delta("par", 21))
    await append(store, Append(A, MAX_TAKEOVERS + 1, 2, events))

    if is_cancelled:
        await store.queue.cancel(A)
        await store.queue.release("w", [A])
    else:
        await expire_leases(store, "a")
        await store.queue.reap()

    log, record = await store.log.read(A), await store.responses.get(A)
    *closing, last = log[6:]
    assert [entry.event.kind for entry in closing] == [
        EventKind.TEXT_DONE,
        EventKind.PART_DONE,
        EventKind.ITEM_DONE,
    ]
    assert last.event.kind is (EventKind.INCOMPLETE if is_cancelled else EventKind.FAILED)
    assert closing[-1].event.outcome == last.event.outcome
    assert [entry.sequence_number for entry in log] == list(range(len(log)))
    assert record is not None
    assert record.last_sequence == last.sequence_number


async def test_reap_takes_many_in_bounded_steps(store: Store) -> None:
    names = [f"r{i:03}" for i in range(150)]
    await enqueue(store, *names)
    await claim_names(store, "w", limit=150)
    await expire_leases(store, *names)

    reaped: list[str] = []
    while some := await store.queue.reap():
        reaped += some

    assert sorted(reaped) == names
    await check_invariants(store)


async def test_lease_of_a_request_that_has_expired_is_dropped(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await store.commands.call("DEL", "cs:{0}:request:a", "cs:{0}:log:a", "cs:{0}:response:a")
    await expire_leases(store, "a")

    assert await store.queue.reap() == []


async def test_seat_lost_without_trace_is_forgotten_when_no_lease_is_left(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await store.commands.call("DEL", "cs:{0}:request:a", "cs:{0}:log:a", "cs:{0}:response:a")
    await expire_leases(store, "a")
    await store.queue.reap()

    await enqueue(store, "b")
    await store.queue.cancel(RequestId("b"))

    await check_invariants(store)


async def test_cancel_of_an_unknown_request_finds_nothing(store: Store) -> None:
    assert await store.queue.cancel(A) is CancelOutcome.NOT_FOUND


async def test_cancel_in_the_queue_ends_the_request_at_once(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    await enqueue(store, "b")

    outcome = await store.queue.cancel(A)

    assert outcome is CancelOutcome.FINISHED_IN_QUEUE
    last = (await store.log.read(A))[-1]
    assert last.event.kind is EventKind.INCOMPLETE
    assert last.event.outcome is not None
    assert last.event.outcome.finish_reason is FinishReason.ABORT
    assert last.event.outcome.usage == Usage(input_tokens=3)
    record = await store.responses.get(A)
    assert record is not None
    assert (record.status, record.output_text) == (ResponseStatus.INCOMPLETE, "")
    assert await claim_names(store, "w") == ["b"]
    await check_invariants(store)


async def test_cancel_of_a_running_request_signals_its_worker(store: Store) -> None:
    await enqueue(store, "a", "b")
    await claim_names(store, "w")

    outcomes = [await store.queue.cancel(A), await store.queue.cancel(A)]

    wakeup = await store.queue.wait_for_work("w", MODEL, Cursor(), 60_000)
    others = await store.queue.wait_for_work("v", MODEL, Cursor(), 1)
    assert outcomes == [CancelOutcome.SIGNALLED] * 2
    assert set(wakeup.cancelled) == {"a"}
    assert others.cancelled == ()
    await check_invariants(store)


async def test_cancel_after_the_end_changes_nothing(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await append(store, ending("a", 1, 2))
    before = await store.responses.get(A)

    outcome = await store.queue.cancel(A)

    assert outcome is CancelOutcome.ALREADY_FINISHED
    assert await store.responses.get(A) == before
    assert len(await store.log.read(A)) == 3


@pytest.mark.parametrize("takes_it", ["release", "reap"])
async def test_cancelled_request_ends_when_its_worker_is_gone(store: Store, takes_it: str) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await append(store, deltas("a", 1, 2, "some"))
    await store.queue.cancel(A)

    if takes_it == "release":
        await store.queue.release("w", [A])
    else:
        await expire_leases(store, "a")
        await store.queue.reap()

    record = await store.responses.get(A)
    assert record is not None
    assert (record.status, record.output_text) == (ResponseStatus.INCOMPLETE, "some")
    assert record.output_token_ids == (2,)
    assert await claim_names(store, "v") == []
    await check_invariants(store)


async def test_cancel_of_a_requeued_request_keeps_what_was_logged(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await append(store, deltas("a", 1, 2, "so ", "far"))
    await store.queue.release("w", [A])

    outcome = await store.queue.cancel(A)

    record = await store.responses.get(A)
    assert outcome is CancelOutcome.FINISHED_IN_QUEUE
    assert record is not None
    assert (record.output_text, record.output_token_ids) == ("so far", (2, 3))
    assert record.outcome is not None
    assert record.outcome.usage == Usage(input_tokens=3, output_tokens=2)
