"""Requests whose time is over: waiting, leased, lost, and at the same moment as something else."""

import asyncio

from store.store_helpers import (
    LEASE_MS,
    MODEL,
    OWNER,
    append,
    check_invariants,
    claim_names,
    deltas,
    end_time,
    ending,
    enqueue,
    expire_leases,
    grow_older,
    messages_of,
)

from chatserve.engine.api import EventKind, FinishReason, Outcome, RequestId
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.queue import CancelOutcome
from chatserve.store.responses import ResponseStatus
from chatserve.store.sessions import MessageStatus

A = RequestId("a")
TIMEOUT_MS = 90_000


async def outcome_of(store: Store, name: str = "a") -> Outcome:
    """Return how a request ended, after checking that it did so once."""
    log = await store.log.read(RequestId(name))
    terminal = [entry for entry in log if entry.event.kind.is_terminal]
    assert [entry.sequence_number for entry in log] == list(range(len(log)))
    assert terminal == log[-1:], f"{name} ended {len(terminal)} times"
    assert terminal[0].event.outcome is not None
    return terminal[0].event.outcome


async def test_claim_ends_a_request_whose_time_is_over_instead_of_handing_it_out(
    store: Store,
) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s", timeout_ms=TIMEOUT_MS)
    await enqueue(store, "b")
    await end_time(store, "a")

    assert await claim_names(store, "w") == ["b"]

    outcome = await outcome_of(store)
    record = await store.responses.get(A)
    assert (outcome.finish_reason, outcome.error_code) == (FinishReason.ERROR, "deadline_exceeded")
    assert outcome.terminal_kind is EventKind.FAILED
    assert record is not None
    assert record.status is ResponseStatus.FAILED
    assert (await messages_of(store, "s"))[-1].status is MessageStatus.FAILED
    await check_invariants(store)


async def test_message_has_the_timeout_and_how_long_the_request_waited(store: Store) -> None:
    await enqueue(store, "a", timeout_ms=TIMEOUT_MS)
    await grow_older(store, "a", seconds=92)
    await end_time(store, "a")

    await store.queue.end_overdue()

    message = (await outcome_of(store)).error_message
    assert message is not None
    assert "waited 92." in message
    assert "its timeout is 90 s" in message


async def test_request_is_ended_where_nobody_claims(store: Store) -> None:
    names = [f"r{i:03}" for i in range(150)]
    await enqueue(store, *names, model="unserved", timeout_ms=TIMEOUT_MS)
    await end_time(store, *names)

    ended: list[str] = []
    while some := await store.queue.end_overdue():
        assert len(some) <= 64
        ended += some

    assert ended == names
    assert await store.queue.depth("unserved") == 0
    await check_invariants(store)


async def test_claim_ends_a_bounded_number_at_a_time(store: Store) -> None:
    names = [f"r{i:03}" for i in range(100)]
    await enqueue(store, *names, timeout_ms=TIMEOUT_MS)
    await enqueue(store, "fresh")
    await end_time(store, *names)

    assert await claim_names(store, "w") == []
    assert await store.queue.depth(MODEL) == 37
    assert await claim_names(store, "w") == ["fresh"]


async def test_request_in_time_is_left_alone(store: Store) -> None:
    await enqueue(store, "timed", timeout_ms=TIMEOUT_MS)
    await enqueue(store, "free")

    assert await store.queue.end_overdue() == []
    assert await claim_names(store, "w") == ["timed", "free"]


async def test_timeout_of_one_millisecond_ends_by_the_clock_of_the_server(store: Store) -> None:
    await enqueue(store, "a", timeout_ms=1)

    async with asyncio.timeout(10):
        while not await store.queue.end_overdue():
            pass

    assert (await outcome_of(store)).error_code == "deadline_exceeded"


async def test_leased_request_is_its_workers_to_end(store: Store) -> None:
    await enqueue(store, "a", timeout_ms=TIMEOUT_MS)
    await claim_names(store, "w")
    await end_time(store, "a")

    assert await store.queue.end_overdue() == []
    assert await store.log.append([ending("a", 1, 2)]) == [True]


async def test_request_lost_after_its_time_ends_with_what_was_written(store: Store) -> None:
    await enqueue(store, "a", timeout_ms=TIMEOUT_MS)
    await claim_names(store, "w")
    await append(store, deltas("a", 1, 2, "so ", "far"))
    await end_time(store, "a")
    await expire_leases(store, "a")
    await store.queue.reap()

    assert await store.queue.end_overdue() == ["a"]

    record = await store.responses.get(A)
    assert record is not None
    assert (record.output_text, record.output_token_ids) == ("so far", (2, 3))
    assert await store.log.append([ending("a", 1, 4)]) == [False]
    assert (await outcome_of(store)).usage.output_tokens == 2
    await check_invariants(store)


async def test_time_counts_from_the_first_enqueue_through_a_take_over(store: Store) -> None:
    await enqueue(store, "a", timeout_ms=TIMEOUT_MS)
    await grow_older(store, "a", seconds=30)
    await claim_names(store, "w")
    deadline = await store.commands.call("HGET", keys.FIRST.key(keys.REQUEST + "a"), "deadline_ms")
    await expire_leases(store, "a")
    await store.queue.reap()

    waits_until = await store.commands.call("ZSCORE", keys.FIRST.key(keys.DEADLINES), "a")
    [claim] = await store.queue.claim("v", MODEL, 1, LEASE_MS)

    assert waits_until == deadline
    assert claim.queued_ms >= 30_000
    assert claim.request.timeout_ms == TIMEOUT_MS


async def test_cancelled_request_that_is_lost_after_its_time_was_cancelled(store: Store) -> None:
    await enqueue(store, "a", timeout_ms=TIMEOUT_MS)
    await claim_names(store, "w")
    await store.queue.cancel(A)
    await end_time(store, "a")

    await store.queue.release("w", [A])

    assert await store.queue.end_overdue() == []
    assert (await outcome_of(store)).finish_reason is FinishReason.ABORT


async def test_cancel_at_the_last_moment_and_the_end_of_time_are_one_end(store: Store) -> None:
    names = [f"r{i}" for i in range(20)]
    await enqueue(store, *names, timeout_ms=TIMEOUT_MS)
    await end_time(store, *names)

    results = await asyncio.gather(
        *(store.queue.cancel(RequestId(name)) for name in names[:10]),
        store.queue.end_overdue(),
        claim_names(store, "w"),
        *(store.queue.cancel(RequestId(name)) for name in names[10:]),
    )

    outcomes = [await outcome_of(store, name) for name in names]
    num_cancelled = results.count(CancelOutcome.FINISHED_IN_QUEUE)
    reasons = [outcome.finish_reason for outcome in outcomes]
    assert reasons.count(FinishReason.ABORT) == num_cancelled
    await check_invariants(store)


async def test_final_append_at_the_last_moment_is_the_end(store: Store) -> None:
    await enqueue(store, "a", timeout_ms=TIMEOUT_MS)
    await claim_names(store, "w")
    await end_time(store, "a")

    await asyncio.gather(
        store.log.append([ending("a", 1, 2)]), store.queue.end_overdue(), store.queue.reap()
    )

    assert (await outcome_of(store)).finish_reason is FinishReason.STOP
    assert await store.queue.cancel(A) is CancelOutcome.ALREADY_FINISHED
    await check_invariants(store)


async def test_answer_that_no_worker_goes_on_with_ends_as_failed(store: Store) -> None:
    """With its only worker gone and none to follow it stayed in progress for ever."""
    await enqueue(store, "a", "b")
    await claim_names(store, "w", limit=1)
    await append(store, deltas("a", 1, 2, "x"))
    await expire_leases(store, "a")
    await store.queue.reap()
    deadlines = keys.FIRST.key(keys.DEADLINES)
    seconds, _ = await store.commands.call("TIME")
    left_s = float(await store.commands.call("ZSCORE", deadlines, "a")) / 1000 - int(seconds)
    nobody_yet = await store.queue.end_overdue()

    await store.commands.call("ZADD", deadlines, "XX", 0, "a")
    ended = await store.queue.end_overdue()

    outcome = await outcome_of(store)
    assert 590 < left_s < 610
    assert (nobody_yet, ended) == ([], ["a"])
    assert (outcome.finish_reason, outcome.error_code) == (FinishReason.ERROR, "worker_lost")
    assert await claim_names(store, "w") == ["b"]
    await check_invariants(store)


async def test_answer_that_is_taken_over_in_time_waits_for_nothing(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await store.queue.release("w", [A])

    assert await claim_names(store, "v") == ["a"]

    assert await store.commands.call("ZCARD", keys.FIRST.key(keys.DEADLINES)) == 0
    await check_invariants(store)


async def test_timeout_ends_a_request_that_came_back_before_its_ten_minutes(store: Store) -> None:
    await enqueue(store, "a", timeout_ms=TIMEOUT_MS)
    await claim_names(store, "w")
    await store.queue.release("w", [A])
    await end_time(store, "a")

    await store.queue.end_overdue()

    assert (await outcome_of(store)).error_code == "deadline_exceeded"
