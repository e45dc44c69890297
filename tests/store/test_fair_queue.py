"""Whose turn it is: between tenants, by what they were served."""

import random
from collections import Counter

import pytest
from store.queue_recount import counters
from store.store_helpers import (
    LEASE_MS,
    MODEL,
    append,
    check_invariants,
    claim_names,
    deltas,
    ending,
    enqueue,
    expire_leases,
)

from chatserve.engine.api import RequestId
from chatserve.store.claim import Claim
from chatserve.store.connection import Store
from chatserve.store.fair_queue import TokenWeights

PROMPT_LEN = 3
ENDING_LEN = 2


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


async def claim_one(store: Store, worker_id: str = "w") -> str:
    [name] = await claim_names(store, worker_id, limit=1)
    return name


async def test_one_request_goes_before_the_thousand_of_another_tenant(store: Store) -> None:
    await enqueue(store, *numbered("a", 1000), tenant="acme")
    for worker_id in ("w1", "w2"):
        for name in await claim_names(store, worker_id, limit=8):
            await append(store, deltas(name, 1, 2, *"some text"))
    await enqueue(store, "b", tenant="brown")

    next_claims = [await claim_one(store, worker_id) for worker_id in ("w1", "w2", "w1", "w2")]

    assert "b" in next_claims[:2]
    await check_invariants(store)


async def test_input_is_charged_before_the_next_is_chosen(store: Store) -> None:
    await enqueue(store, *numbered("a", 6), tenant="acme")
    await enqueue(store, *numbered("b", 6), tenant="brown")

    claimed = await claim_names(store, "w", limit=6)

    assert claimed == ["a0", "b0", "a1", "b1", "a2", "b2"]


async def test_long_prompts_cost_their_tenant_turns(store: Store) -> None:
    await enqueue(store, *numbered("a", 3), tenant="acme", prompt_token_ids=tuple(range(40)))
    await enqueue(store, *numbered("b", 6), tenant="brown", prompt_token_ids=tuple(range(10)))

    claimed = await claim_names(store, "w", limit=7)

    assert claimed == ["a0", "b0", "b1", "b2", "b3", "a1", "b4"]


async def test_output_is_charged_when_it_is_written_and_only_once(store: Store) -> None:
    await enqueue(store, "a", "waits")
    await claim_names(store, "w", limit=1)
    written, refused = deltas("a", 1, 2, "x", "y"), deltas("a", 9, 4, "z")

    for attempt in (written, written, refused):
        await store.log.append([attempt])

    assert await counters(store, MODEL) == {"default": PROMPT_LEN + 2 * 2}


async def test_ids_that_no_delta_had_are_charged_at_the_end(store: Store) -> None:
    await enqueue(store, "a", "waits")
    await claim_names(store, "w", limit=1)

    await append(store, deltas("a", 1, 2, "x"), ending("a", 1, 3))

    assert await counters(store, MODEL) == {"default": PROMPT_LEN + ENDING_LEN * 2}


async def test_weights_are_those_of_the_worker(store: Store) -> None:
    await enqueue(store, "a", "waits")
    await store.queue.claim("w", MODEL, 1, LEASE_MS, TokenWeights(input=10, output=100))

    await append(store, deltas("a", 1, 2, "x"))

    assert await counters(store, MODEL) == {"default": 10 * PROMPT_LEN + 100}


async def test_request_that_was_lost_is_not_charged_again(store: Store) -> None:
    await enqueue(store, "a", "waits")
    await claim_names(store, "w", limit=1)
    await append(store, deltas("a", 1, 2, "x", "y"))
    before = await counters(store, MODEL)
    await expire_leases(store, "a")
    await store.queue.reap()

    [claim] = await store.queue.claim("v", MODEL, 1, LEASE_MS)

    assert claim.epoch == 2
    assert await counters(store, MODEL) == before


async def test_tenant_that_comes_back_has_no_credit_for_its_absence(store: Store) -> None:
    await enqueue(store, *numbered("b", 1), tenant="brown")
    await enqueue(store, *numbered("a", 40), tenant="acme")
    await claim_names(store, "w", limit=21)

    await enqueue(store, *numbered("back", 5), tenant="brown")

    levels = await counters(store, MODEL)
    assert levels["brown"] == levels["acme"]
    assert Counter(name[0] for name in await claim_names(store, "w", limit=10)) == {"a": 5, "b": 5}


async def test_first_tenant_after_a_lull_starts_where_the_last_one_was(store: Store) -> None:
    """A newcomer that found nobody waiting would start at zero, ahead of all by what they had."""
    await enqueue(store, *numbered("a", 10), tenant="acme")
    await claim_names(store, "w", limit=10)

    await enqueue(store, "b", tenant="brown")

    assert (await counters(store, MODEL))["brown"] == 9 * PROMPT_LEN


async def test_slow_answer_does_not_pin_the_level_to_the_past(store: Store) -> None:
    """Were leased requests to count, one idle stream would be a credit for its tenant's burst."""
    await enqueue(store, "slow", tenant="chris")
    await enqueue(store, *numbered("a", 40), tenant="acme")
    await claim_names(store, "w", limit=31)

    await enqueue(store, *numbered("c", 9), tenant="chris")

    assert Counter(name[0] for name in await claim_names(store, "w", limit=8)) == {"a": 4, "c": 4}


async def test_debt_outlives_the_last_request_of_its_tenant(store: Store) -> None:
    """A tenant that comes and goes would have its heavy answer for nothing."""
    await enqueue(store, *numbered("b", 20), tenant="brown")
    await enqueue(store, "heavy", tenant="acme")
    await claim_names(store, "w", limit=2)
    await append(store, deltas("heavy", 1, 2, *"0123456789"), ending("heavy", 1, 12))

    await enqueue(store, "again", tenant="acme")

    levels = await counters(store, MODEL)
    assert levels == {"acme": PROMPT_LEN + 10 * 2, "brown": PROMPT_LEN}
    assert "again" not in await claim_names(store, "w", limit=6)
    assert "again" in await claim_names(store, "w", limit=3)


async def test_paid_debts_are_forgotten_and_open_ones_are_not(store: Store) -> None:
    await enqueue(store, *numbered("b", 30), tenant="brown")
    for tenant in ("light", "heavy"):
        await enqueue(store, tenant, tenant=tenant)
    await claim_names(store, "w", limit=3)
    await append(store, ending("light", 1, 2))
    await append(store, deltas("heavy", 1, 2, *"0123456789" * 9), ending("heavy", 1, 92))

    await claim_names(store, "w", limit=5)

    assert set(await counters(store, MODEL)) == {"brown", "heavy"}
    await check_invariants(store)


async def test_nothing_is_left_of_a_model_that_is_idle(store: Store) -> None:
    await enqueue(store, "a", tenant="acme")
    await enqueue(store, "b", tenant="brown")
    await claim_names(store, "w", limit=1)
    await append(store, deltas("a", 1, 2, "x"), ending("a", 1, 3))

    await store.queue.cancel(RequestId("b"))

    assert await counters(store, MODEL) == {}
    await check_invariants(store)


@pytest.mark.parametrize("weights", [TokenWeights(), TokenWeights(3, 1)], ids=str)
async def test_two_busy_tenants_are_served_alike_within_the_bound(
    store: Store, weights: TokenWeights
) -> None:
    """Each gets half of the weighted tokens, whatever the shape of its requests.

    The bound is that of the paper: 2 U, where U is a prompt and a full set of seats, each with the
    longest answer, for whoever was just allowed in may take them all before it is charged.
    """
    rng, num_seats = random.Random(0), 4
    shapes = {"acme": (30, 4), "brown": (5, 16)}  # prompt and answer, in tokens
    bound = 2 * (weights.input * 30 + weights.output * 16 * num_seats)
    served, running, furthest = Counter[str](), dict[str, Claim](), 0
    num_output = Counter[str]()
    for tenant, (prompt_len, _) in shapes.items():
        names = numbered(tenant, 150)
        await enqueue(store, *names, tenant=tenant, prompt_token_ids=tuple(range(prompt_len)))

    while sum(served.values()) < 20 * bound:
        free = num_seats - len(running)
        for claim in await store.queue.claim("w", MODEL, free, LEASE_MS, weights):
            running[claim.request.request_id] = claim
            served[claim.request.tenant] += weights.input * len(claim.request.prompt_token_ids)
        name = rng.choice(list(running))
        tenant = running[name].request.tenant
        await append(store, deltas(name, 1, 2 + num_output[name], "x"))
        num_output[name] += 1
        served[tenant] += weights.output
        if num_output[name] == shapes[tenant][1]:
            await append(store, ending(name, 1, 2 + num_output[name]))
            del running[name]
        furthest = max(furthest, abs(served["acme"] - served["brown"]))

    assert 0 < furthest <= bound
    assert set((await counters(store, MODEL)).values()) == set(served.values())
