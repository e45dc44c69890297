"""Limits of tenants and keys: what is taken, what is refused, and what goes back at the end."""

import asyncio

from store.limit_helpers import (
    TENANT,
    about,
    ask,
    claim_all,
    end_of,
    is_taken,
    key_limits,
    pass_time,
    remaining_tokens,
    tenant_limits,
)
from store.store_helpers import append, end_time, expire_leases

from chatserve.engine.api import RequestId
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Place
from chatserve.store.limits import Allowances, Limited, Reservation
from chatserve.store.queue import CancelOutcome


async def test_request_reserves_its_tokens_of_tenant_and_key(store: Store) -> None:
    tenant, key = tenant_limits(tokens=100), key_limits(tokens=50)

    place = await ask(store, "a", tenant, key, tokens=30)

    assert isinstance(place, Place)
    assert place.allowances.tokens is not None
    assert (place.allowances.tokens.limit, place.allowances.tokens.remaining) == (50, about(20))
    assert await remaining_tokens(store, tenant) == about(70)


async def test_refused_request_leaves_nothing_behind(store: Store) -> None:
    tenant, key = tenant_limits(tokens=100, requests=9, parallel=9), key_limits(tokens=20)
    await ask(store, "a", tenant, key, tokens=15)
    before = sorted(await store.commands.call("KEYS", "*"))

    refused = await ask(store, "b", tenant, key, tokens=15)

    assert isinstance(refused, Limited)
    assert sorted(await store.commands.call("KEYS", "*")) == before
    assert await remaining_tokens(store, tenant) == about(85)
    assert await store.responses.get(RequestId("b")) is None


async def test_refusal_names_the_limit_and_the_time_after_which_it_fits(store: Store) -> None:
    tenant = tenant_limits(tokens=60)
    await ask(store, "a", tenant, tokens=50)

    refused = await ask(store, "b", tenant, tokens=30)
    assert isinstance(refused, Limited)
    assert refused.retry_ms is not None
    await pass_time(store, refused.retry_ms / 1e3)

    assert (refused.scope, refused.name) == (f"tenant:{TENANT}", "tokens")
    assert (refused.limit, refused.remaining, refused.needed) == (60, about(10), 30)
    assert 15_000 < refused.retry_ms <= 20_000
    assert await is_taken(store, "b", tenant, tokens=30)


async def test_request_above_a_whole_limit_is_told_that_it_never_fits(store: Store) -> None:
    refused = await ask(store, "a", tenant_limits(tokens=20), tokens=21)

    assert isinstance(refused, Limited)
    assert refused.retry_ms is None


async def test_longest_of_several_shortages_is_told(store: Store) -> None:
    scopes = (tenant_limits(tokens=600, requests=1), key_limits(tokens=600))
    await ask(store, "a", *scopes, tokens=599)

    refused = await ask(store, "b", *scopes, tokens=2)

    assert isinstance(refused, Limited)
    assert (refused.name, refused.limit) == ("requests", 1)


async def test_requests_come_back_at_the_rate_of_their_limit(store: Store) -> None:
    tenant = tenant_limits(requests=2)
    await ask(store, "a", tenant)
    await ask(store, "b", tenant)

    assert not await is_taken(store, "c", tenant)
    await pass_time(store, 30)
    assert await is_taken(store, "c", tenant)
    assert not await is_taken(store, "d", tenant)


async def test_end_gives_back_what_the_answer_did_not_use(store: Store) -> None:
    tenant = tenant_limits(tokens=100)
    await ask(store, "a", tenant, tokens=80)
    await claim_all(store)

    await append(store, end_of("a", num_output=7))

    assert await remaining_tokens(store, tenant) == about(90)  # 3 of the prompt, 7 of the answer


async def test_end_gives_back_nothing_that_had_run_down_by_then(store: Store) -> None:
    """Others had that room already: with it they would have it twice."""
    tenant = tenant_limits(tokens=60)
    await ask(store, "a", tenant, tokens=60)
    await claim_all(store)
    await pass_time(store, 30)
    await ask(store, "b", tenant, tokens=30)

    await append(store, end_of("a", num_output=0))

    assert await remaining_tokens(store, tenant) == about(30)


async def test_repeated_and_refused_ends_give_back_once(store: Store) -> None:
    tenant = tenant_limits(tokens=100)
    await ask(store, "a", tenant, tokens=50)
    await ask(store, "b", tenant, tokens=50)
    await claim_all(store)
    end = end_of("a", num_output=2)

    assert await store.log.append([end, end, end_of("a", 2, epoch=2)]) == [True, True, False]

    assert await remaining_tokens(store, tenant) == about(45)


async def test_request_that_nobody_ran_gives_back_all_its_tokens(store: Store) -> None:
    tenant = tenant_limits(tokens=100, parallel=2)
    await ask(store, "a", tenant, tokens=50)
    await ask(store, "b", tenant, tokens=50, timeout_ms=60_000)

    assert await store.queue.cancel(RequestId("a")) is CancelOutcome.FINISHED_IN_QUEUE
    await end_time(store, "b")
    assert await store.queue.end_overdue() == ["b"]

    assert await remaining_tokens(store, tenant) == about(100)
    assert await remaining_tokens(store, tenant) == about(100)
    assert await store.commands.call("ZCARD", keys.FIRST.key(f"parallel:{tenant.name}")) == 0


async def test_take_over_keeps_the_reservation_and_a_lost_request_settles_once(
    store: Store,
) -> None:
    tenant = tenant_limits(tokens=100, parallel=1)
    await ask(store, "a", tenant, tokens=60)
    for worker in ("w0", "w1", "w2"):
        await claim_all(store, worker)
        assert await remaining_tokens(store, tenant) == about(40)
        assert not await is_taken(store, "b", tenant)
        await expire_leases(store, "a")
        await store.queue.reap()

    assert await remaining_tokens(store, tenant) == about(97)  # the prompt was computed
    assert await is_taken(store, "b", tenant)


async def test_parallel_responses_are_bounded_until_one_ends(store: Store) -> None:
    tenant = tenant_limits(parallel=2)
    assert await is_taken(store, "a", tenant)
    assert await is_taken(store, "b", tenant)
    refused = await ask(store, "c", tenant)
    await claim_all(store)
    await append(store, end_of("a", num_output=1))

    assert isinstance(refused, Limited)
    assert (refused.name, refused.limit, refused.remaining) == ("parallel", 2, 0)
    assert await is_taken(store, "c", tenant)


async def test_response_whose_request_was_lost_does_not_count(store: Store) -> None:
    tenant = tenant_limits(parallel=1)
    await ask(store, "a", tenant)
    await store.commands.call("DEL", keys.FIRST.key(keys.REQUEST + "a"))

    assert await is_taken(store, "b", tenant)
    assert not await is_taken(store, "c", tenant)


async def test_fifty_at_once_do_not_pass_a_limit_meant_for_one(store: Store) -> None:
    for number, limits in enumerate(({"requests": 1}, {"tokens": 15}, {"parallel": 1})):
        scope = tenant_limits(**limits)
        names = [f"r{number}-{i}" for i in range(50)]

        taken = await asyncio.gather(*(is_taken(store, name, scope) for name in names))

        assert sum(taken) == 1, limits
        await store.commands.call("FLUSHALL")


async def test_repetition_reserves_nothing_more(store: Store) -> None:
    tenant = tenant_limits(tokens=100, requests=5)

    for _ in range(3):
        assert await is_taken(store, "a", tenant, tokens=40)

    assert await remaining_tokens(store, tenant) == about(60)


async def test_choices_of_one_body_are_taken_where_all_of_them_fit(store: Store) -> None:
    tenant = tenant_limits(requests=3)

    assert not await is_taken(store, "w", tenant, together=4)
    for left in (3, 2, 1):
        assert await is_taken(store, f"r{left}", tenant, together=left)
    assert not await is_taken(store, "x", tenant)


async def test_other_tenants_and_keys_are_not_touched(store: Store) -> None:
    await ask(store, "a", tenant_limits(requests=9), key_limits(requests=1))

    assert not await is_taken(store, "b", tenant_limits(requests=9), key_limits(requests=1))
    assert await is_taken(store, "b", tenant_limits(requests=9))


async def test_changed_limit_holds_from_the_next_request_on(store: Store) -> None:
    await ask(store, "a", tenant_limits(tokens=100), tokens=60)

    assert not await is_taken(store, "b", tenant_limits(tokens=50), tokens=1)
    assert await is_taken(store, "c", tenant_limits(tokens=1000), tokens=900)


async def test_limit_of_zero_refuses_everybody(store: Store) -> None:
    assert not await is_taken(store, "a", tenant_limits(requests=0))
    assert not await is_taken(store, "b", tenant_limits(parallel=0))


async def test_unlimited_request_is_told_nothing(store: Store) -> None:
    place = await ask(store, "a")

    assert isinstance(place, Place)
    assert not place.allowances
    assert await store.limits.read(TENANT, ()) == Allowances()


async def test_meters_of_an_idle_scope_vanish(store: Store) -> None:
    await ask(store, "a", tenant_limits(tokens=100, parallel=3))

    call = store.commands.call
    assert 0 < await call("TTL", keys.FIRST.key(f"meters:tenant:{TENANT}")) <= keys.METERS_TTL_S
    assert await call("TTL", keys.FIRST.key(f"parallel:tenant:{TENANT}")) > 0


async def test_request_without_an_answer_is_taken_under_all_limits_or_none(store: Store) -> None:
    tenant, key = tenant_limits(requests=3), key_limits(requests=2)
    alone = Reservation((tenant, key), tokens=0)

    taken = [await store.limits.take(TENANT, alone) for _ in range(3)]
    of_tenant = await store.limits.read(TENANT, [tenant])

    assert taken[:2] == [None, None]
    assert isinstance(taken[2], Limited)
    assert (taken[2].scope, taken[2].name, taken[2].limit) == (key.name, "requests", 2)
    assert of_tenant.requests is not None
    assert of_tenant.requests.remaining == 1


async def test_asking_for_room_takes_none(store: Store) -> None:
    tenant = tenant_limits(requests=1)
    alone = Reservation((tenant,), tokens=0)

    before = [await store.limits.room(TENANT, alone) for _ in range(3)]
    await store.limits.take(TENANT, alone)
    after = await store.limits.room(TENANT, alone)

    assert before == [None, None, None]
    assert isinstance(after, Limited)
    assert after.retry_ms is not None
