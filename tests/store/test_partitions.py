"""A store in several partitions: ids lead to keys, and tenants of all of them take turns."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.store_helpers import LEASE_MS, MODEL, enqueue, make_request

from chatserve.engine.api import RequestId
from chatserve.gateway.ids import new_id
from chatserve.store.connection import Store
from chatserve.store.keys import FIRST, GLOBAL, PARTITIONS, Partitions, digit_of
from chatserve.store.partition_turns import order_turns
from chatserve.store.queue import CancelOutcome

MANY = Partitions(PARTITIONS)
COUNTERS = st.lists(st.none() | st.floats(0, 1e9), min_size=16, max_size=16)


def tenants_of_all_partitions() -> list[str]:
    """Return a tenant for each partition, in their order."""
    found: dict[int, str] = {}
    for number in range(1000):
        found.setdefault(digit_of(f"tenant-{number}"), f"tenant-{number}")
    return [found[digit] for digit in range(16)]


@given(st.text(min_size=1))
def test_ids_of_a_tenant_lead_to_its_partition(tenant: str) -> None:
    ids = [new_id(prefix, tenant) for prefix in ("resp_", "conv_", "chatcmpl-", "cmpl-")]

    assert {MANY.of_id(each) for each in ids} == {MANY.of_tenant(tenant)}


def test_on_one_server_everything_is_in_the_first_partition() -> None:
    alone = Partitions()

    assert {alone.of_tenant(each) for each in tenants_of_all_partitions()} == {FIRST}
    assert alone.of_id("resp_f000") == FIRST


def test_no_two_partitions_share_a_key_and_each_has_one_hash_tag() -> None:
    roots = [each.root for each in (*PARTITIONS, GLOBAL)]

    assert len(set(roots)) == 17
    assert all(root.count("{") == root.count("}") == 1 for root in roots)


@given(COUNTERS, st.lists(st.floats(0, 1e9), min_size=16, max_size=16))
def test_turns_begin_with_the_lowest_counter_and_end_at_the_next(
    lowest: list[float | None], floors: list[float]
) -> None:
    turns = order_turns(PARTITIONS, lowest, floors)

    counters = [lowest[PARTITIONS.index(turn.partition)] for turn in turns]
    lifted = [max(counter or 0.0, max(floors)) for counter in counters]
    assert len(turns) == sum(counter is not None for counter in lowest)
    assert lifted == sorted(lifted)
    if len(turns) == 1:
        assert turns[0].until is None
    else:
        assert [turn.until for turn in turns] == [*lifted[1:], *lifted[-1:]]
    assert {turn.floor for turn in turns} <= {max(floors)}


async def test_tenants_of_all_partitions_are_served_in_equal_measure(store: Store) -> None:
    tenants = tenants_of_all_partitions()
    for tenant in tenants:
        for _ in range(6):
            await enqueue(store, new_id("resp_", tenant), tenant=tenant)

    claims = await store.queue.claim("w", MODEL, 32, LEASE_MS)

    assert Counter(claim.request.tenant for claim in claims) == dict.fromkeys(tenants, 2)


async def test_tenant_that_comes_back_gets_no_credit_in_its_partition(store: Store) -> None:
    busy, idle = tenants_of_all_partitions()[:2]
    for _ in range(12):
        await enqueue(store, new_id("resp_", busy), tenant=busy)
    await store.queue.claim("w", MODEL, 8, LEASE_MS)
    for _ in range(8):
        await enqueue(store, new_id("resp_", idle), tenant=idle)

    claims = await store.queue.claim("w", MODEL, 4, LEASE_MS)

    assert Counter(claim.request.tenant for claim in claims) == {busy: 2, idle: 2}


async def test_every_request_is_found_wherever_it_is(store: Store) -> None:
    names = {tenant: new_id("resp_", tenant) for tenant in tenants_of_all_partitions()}
    for tenant, name in names.items():
        await enqueue(store, name, tenant=tenant)
    ids = [RequestId(name) for name in names.values()]

    claims = await store.queue.claim("w", MODEL, 15, LEASE_MS)
    lost = await store.queue.extend_leases("w", ids, LEASE_MS)

    assert len(claims) == 15
    assert len(lost) == await store.queue.depth(MODEL) == 1
    outcomes = Counter([await store.queue.cancel(each) for each in ids])
    assert outcomes == {CancelOutcome.SIGNALLED: 15, CancelOutcome.FINISHED_IN_QUEUE: 1}
    await store.queue.release("w", ids)
    logs = [await store.log.read(each) for each in ids]
    assert all(log[-1].event.kind.is_terminal for log in logs)


@pytest.mark.parametrize("name", ["", "x", "resp_", "resp_z", "é_1"])
def test_id_without_a_digit_is_looked_for_in_the_first_partition(name: str) -> None:
    assert MANY.of_id(make_request(name).request_id) == PARTITIONS[0]
