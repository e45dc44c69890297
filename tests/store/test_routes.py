"""Requests that were sent to a worker: who may take them, and when."""

from store.store_helpers import (
    LEASE_MS,
    MODEL,
    check_invariants,
    enqueue,
    expire_leases,
    grow_older,
)

from chatserve.store.connection import Store
from chatserve.store.queue import STEAL_AFTER_MS

NEVER_MS = 3_600_000


async def claim(store: Store, worker_id: str, limit: int = 100, steal_ms: int = NEVER_MS) -> str:
    claims = await store.queue.claim(worker_id, MODEL, limit, LEASE_MS, steal_after_ms=steal_ms)
    return " ".join(claim.request.request_id for claim in claims)


async def test_a_worker_leaves_to_another_what_was_sent_there(store: Store) -> None:
    await enqueue(store, "first", route="w1")
    await enqueue(store, "second", route="w2")
    await enqueue(store, "third")

    assert await claim(store, "w2") == "second third"
    assert await claim(store, "w1") == "first"
    await check_invariants(store)


async def test_what_waited_too_long_for_its_worker_is_anybodys(store: Store) -> None:
    await enqueue(store, "old", route="gone")
    await enqueue(store, "new", route="gone")
    await grow_older(store, "old", seconds=10)

    assert await claim(store, "w2", steal_ms=5_000) == "old"
    assert await claim(store, "w2", steal_ms=5_000) == ""


async def test_tenant_whose_turn_is_passed_over_keeps_it(store: Store) -> None:
    await enqueue(store, "a1", "a2", tenant="acme", route="w1")
    await enqueue(store, "b1", "b2", "b3", tenant="brown")

    assert await claim(store, "w2", limit=2) == "b1 b2"
    assert await claim(store, "w1", limit=3) == "a1 a2 b3"
    await check_invariants(store)


async def test_lost_request_goes_to_whoever_is_there(store: Store) -> None:
    await enqueue(store, "a", route="w1")
    await claim(store, "w1")
    await grow_older_lease(store, "a")

    assert await claim(store, "w2", steal_ms=STEAL_AFTER_MS) == "a"


async def grow_older_lease(store: Store, name: str) -> None:
    """Lose a request ten seconds after its enqueue."""
    await expire_leases(store, name)
    await store.queue.reap()
    await grow_older(store, name, seconds=10)


async def test_claim_looks_at_a_bounded_number_of_others_requests(store: Store) -> None:
    for number in range(16):
        await enqueue(store, f"theirs{number}", route="w1")
    await enqueue(store, "hidden", route="w2")

    assert await claim(store, "w2") == ""
    await claim(store, "w1", limit=1)
    assert await claim(store, "w2") == "hidden"


async def test_nobody_is_hidden_for_ever_by_many_tenants(store: Store) -> None:
    for number in range(9):
        await enqueue(store, f"theirs{number}", tenant=f"tenant{number}", route="w1")
    await enqueue(store, "hidden", tenant="zoe", route="w2")

    assert await claim(store, "w2") == ""
    assert "hidden" in await claim(store, "w2", steal_ms=0)
    await check_invariants(store)
