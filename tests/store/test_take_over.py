"""What is known of an answer whose worker was lost: how it began, and how far its prompt was."""

from store.store_helpers import LEASE_MS, MODEL, append, claim_names, enqueue, expire_leases

from chatserve.engine.api import EventKind, LogEvent, Prefill, RequestId, Timings
from chatserve.store.claim import LoggedStart
from chatserve.store.connection import Store
from chatserve.store.response_log import Append
from chatserve.store.stage import Stage

A = RequestId("a")

BEGINNING = Append(
    A,
    1,
    2,
    (
        LogEvent(EventKind.IN_PROGRESS, input_tokens=3, cached_tokens=1, queue_ms=4.5),
        LogEvent(EventKind.DELTA, "so", (2,), ttft_ms=20.75),
    ),
)


async def test_worker_that_takes_over_knows_what_readers_were_told_of_the_start(
    store: Store,
) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await append(store, BEGINNING)
    await store.queue.release("w", [A])

    [claim] = await store.queue.claim("v", MODEL, 1, LEASE_MS)

    assert claim.logged_start == LoggedStart(cached_tokens=1, queue_ms=4.5, ttft_ms=20.75)


async def test_answer_that_no_worker_ends_keeps_its_timings(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await append(store, BEGINNING)
    await store.queue.release("w", [A])

    await store.queue.cancel(A)

    record = await store.responses.get(A)
    assert record is not None
    assert record.outcome is not None
    assert record.outcome.timings == Timings(queue_ms=4.5, prefill_ms=16.25, ttft_ms=20.75)


async def test_owner_says_with_its_lease_how_far_a_prompt_is_until_it_is_done(
    store: Store,
) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    prefill = Prefill(cached_tokens=1, computed_tokens=1, total_tokens=3)

    await store.queue.extend_leases("w", [A], LEASE_MS, prefills={A: prefill})
    told = await store.queue.stages([A])
    await store.queue.extend_leases("w", [A], LEASE_MS)
    done = await store.queue.stages([A])

    assert told == [Stage(was_claimed=True, owner="w", prefill=prefill)]
    assert done == [Stage(was_claimed=True, owner="w")]


async def test_prompt_is_done_once_a_token_is_in_the_log(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await store.queue.extend_leases("w", [A], LEASE_MS, prefills={A: Prefill(1, 1, 3)})

    await append(store, BEGINNING)

    assert await store.queue.stages([A]) == [Stage(was_claimed=True, owner="w")]


async def test_how_far_a_lost_owner_was_is_forgotten_with_it(store: Store) -> None:
    await enqueue(store, "a")
    await claim_names(store, "w")
    await store.queue.extend_leases("w", [A], LEASE_MS, prefills={A: Prefill(1, 1, 3)})
    await expire_leases(store, "a")

    await store.queue.reap()

    [stage] = await store.queue.stages([A])
    assert stage is not None
    assert (stage.was_claimed, stage.owner, stage.prefill) == (True, None, None)
    assert stage.place is not None
    assert stage.place.position == 0
