"""Within a tenant: priorities that age, places, room in a full queue, names that could collide."""

import time

import pytest
from store.store_helpers import (
    LEASE_MS,
    MODEL,
    append,
    check_invariants,
    claim_names,
    ending,
    enqueue,
    grow_older,
    make_record,
    make_request,
)

from chatserve.engine.api import RequestId
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Full, Place
from chatserve.store.stage import Stage

SPAN_MS = 10_000


async def is_taken(store: Store, name: str, tenant: str, max_queue: int) -> bool:
    place = await store.queue.enqueue(
        make_request(name, tenant=tenant), make_record(name), max_queue=max_queue
    )
    return isinstance(place, Place)


async def position(store: Store, name: str) -> Place | None:
    [stage] = await store.queue.stages([RequestId(name)])
    return stage.place if stage else None


async def count_departures(store: Store, spans_ago: int, count: int) -> None:
    """Let so many requests have left the queue in one of the last spans."""
    span = int(time.time() * 1000) // SPAN_MS - spans_ago
    await store.commands.call("HSET", keys.FIRST.key(keys.PACE + MODEL), span, count)


async def test_lower_priority_value_goes_first_and_equals_by_age(store: Store) -> None:
    for name, priority in {"a": 0, "b": 5, "c": -5, "d": 0}.items():
        await enqueue(store, name, priority=priority)

    assert await claim_names(store, "w") == ["c", "a", "d", "b"]


async def test_waiting_makes_up_for_priority(store: Store) -> None:
    await enqueue(store, "old", priority=3)
    await enqueue(store, "young", priority=0)
    await grow_older(store, "old", seconds=29)
    before = await position(store, "old")

    await grow_older(store, "old", seconds=2)

    assert before == Place(1, None)
    assert await claim_names(store, "w") == ["old", "young"]


async def test_stream_of_urgent_requests_starves_nobody(store: Store) -> None:
    await enqueue(store, "patient", priority=10)
    claimed: list[str] = []

    for i in range(30):  # one urgent request every ten seconds, and a worker that takes one
        await enqueue(store, f"urgent{i}", priority=-10)
        claimed += await claim_names(store, "w", limit=1)
        if "patient" in claimed:
            break
        await grow_older(store, "patient", seconds=10)

    assert claimed.index("patient") == 20


async def test_priority_is_no_matter_between_tenants(store: Store) -> None:
    await enqueue(store, "a0", "a1", tenant="acme", priority=-10)
    await enqueue(store, "b0", "b1", tenant="brown", priority=10)

    assert await claim_names(store, "w") == ["a0", "b0", "a1", "b1"]


async def test_request_handed_back_waits_where_it_would_have_waited(store: Store) -> None:
    await enqueue(store, "first", "second")
    await claim_names(store, "w", limit=1)
    await enqueue(store, "urgent", priority=-1)
    await enqueue(store, "last")

    await store.queue.release("w", [RequestId("first")])

    assert await claim_names(store, "v") == ["urgent", "first", "second", "last"]


async def test_position_counts_the_tenants_own_requests_only(store: Store) -> None:
    await enqueue(store, *(f"a{i}" for i in range(5)), tenant="acme")
    await enqueue(store, "b0", "b1", tenant="brown")

    assert await position(store, "b1") == Place(1, None)
    assert await position(store, "a4") == Place(4, None)
    assert await store.queue.depth(MODEL) == 7


async def test_position_is_known_until_the_claim(store: Store) -> None:
    await enqueue(store, "a", "b", "c")

    await claim_names(store, "w", limit=2)

    stages = await store.queue.stages([RequestId(name) for name in "abc"])
    assert stages == [Stage(True, "w"), Stage(True, "w"), Stage(place=Place(0, 5000))]


async def test_full_queue_has_room_for_the_share_of_every_other_tenant(store: Store) -> None:
    tries = [("acme", 9), ("brown", 5), ("chris", 3), ("brown", 1), ("acme", 1)]

    taken = [
        (tenant, [await is_taken(store, f"{i}.{tenant}{n}", tenant, 8) for n in range(count)])
        for i, (tenant, count) in enumerate(tries)
    ]

    assert taken == [
        ("acme", [True] * 8 + [False]),
        ("brown", [True] * 4 + [False]),
        ("chris", [True] * 2 + [False]),
        ("brown", [False]),
        ("acme", [False]),
    ]


async def test_tenant_without_a_request_always_finds_a_place(store: Store) -> None:
    taken = [await is_taken(store, f"r{i}", f"tenant{i}", 3) for i in range(20)]

    assert all(taken)


async def test_refusal_says_when_half_of_the_queue_will_have_left(store: Store) -> None:
    await enqueue(store, *"abcdef")
    await count_departures(store, spans_ago=2, count=30)

    refusal = await store.queue.enqueue(make_request("g"), make_record("g"), max_queue=6)

    assert isinstance(refusal, Full)
    assert refusal.depth == 6
    assert refusal.retry_ms is not None
    assert 3 * 2 * SPAN_MS / 30 <= refusal.retry_ms <= 3 * 4 * SPAN_MS / 30


async def test_eta_follows_from_turns_and_pace(store: Store) -> None:
    await enqueue(store, *(f"a{i}" for i in range(50)), tenant="acme")
    await enqueue(store, "b0", "b1", tenant="brown")
    await count_departures(store, spans_ago=1, count=10)

    near = await position(store, "b1")
    far = await position(store, "a49")

    assert near is not None
    assert far is not None
    assert near.eta_ms is not None
    assert far.eta_ms is not None
    assert 4 * SPAN_MS / 10 <= near.eta_ms <= 4 * 3 * SPAN_MS / 10  # two turns of two tenants
    assert 52 * SPAN_MS / 10 <= far.eta_ms <= 52 * 3 * SPAN_MS / 10  # never more than all


async def test_pace_remembers_a_minute_and_no_more(store: Store) -> None:
    for spans_ago in range(6, 60):
        await count_departures(store, spans_ago, 100)
    await enqueue(store, "a", "b", "c")
    unknown = await position(store, "c")

    await claim_names(store, "w", limit=1)

    known = await position(store, "c")
    assert unknown == Place(2, None)
    assert known is not None
    assert known.eta_ms is not None
    assert await store.commands.call("HLEN", keys.FIRST.key(keys.PACE + MODEL)) == 1


HOSTILE = [
    ("m", "a:b"),
    ("m:a", "b"),
    ("m:1", "a"),
    ("1:m", "1:m"),
    ("m", ""),
    ("m", "cs:{0}:waiting:m"),
    ("m", "*\n\x00{m}"),
    ("m", "ä"),
    ("m", "a\u0308"),
    ("m", "x" * 20_000),
    ("m", "x" * 20_001),
]


@pytest.mark.parametrize("takes_it", ["claim", "cancel"])
async def test_no_names_of_model_and_tenant_share_a_line(store: Store, takes_it: str) -> None:
    for i, (model, tenant) in enumerate(HOSTILE):
        await enqueue(store, f"r{i}", f"s{i}", model=model, tenant=tenant)
    await check_invariants(store)

    for i, (model, _) in enumerate(HOSTILE):
        if takes_it == "cancel":
            await store.queue.cancel(RequestId(f"r{i}"))
            await store.queue.cancel(RequestId(f"s{i}"))
        else:
            claims = await store.queue.claim("w", model, 100, LEASE_MS)
            assert {claim.request.model for claim in claims} <= {model}
            for claim in claims:
                await append(store, ending(claim.request.request_id, 1, 2))

    assert await store.commands.call("KEYS", keys.FIRST.key(keys.LINE + "*")) == []
    await check_invariants(store)
