"""Usage is what the response objects say, whoever was killed while it was counted."""

from store.limit_helpers import (
    TENANT,
    claim_all,
    end_of,
    rows_of,
    total_of,
    total_of_responses,
)
from store.store_helpers import append, deltas, end_time, enqueue, expire_leases

from chatserve.engine.api import RequestId
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.usage import OTHER_USERS, Used


async def test_answer_counts_for_its_user_and_model(store: Store) -> None:
    await enqueue(store, "a", "b", tenant=TENANT, user="ann@example.org")
    await enqueue(store, "c", tenant=TENANT, user="bob")
    await claim_all(store)

    await append(store, end_of("a", 5), end_of("b", 7), end_of("c", 1))

    ann, bob = await rows_of(store)
    assert (ann.tenant, ann.user, ann.model) == (TENANT, "ann@example.org", "tiny")
    assert ann.used == Used(2, input_tokens=6, cached_tokens=2, output_tokens=12)
    assert (bob.user, bob.used) == ("bob", Used(1, 3, 1, 1))


async def test_totals_are_those_of_the_response_objects_after_kills(store: Store) -> None:
    names = ("ended", "lost", "cancelled", "overdue", "taken-over")
    await enqueue(store, *names[:3], names[4], tenant=TENANT)
    await enqueue(store, "overdue", tenant=TENANT, timeout_ms=60_000)
    await store.queue.cancel(RequestId("cancelled"))
    await end_time(store, "overdue")
    await claim_all(store)
    end = end_of("ended", 4)
    await store.log.append([end, end, end_of("ended", 4, epoch=2), end])
    await append(store, deltas("lost", 1, 2, "so ", "far"), deltas("taken-over", 1, 2, "x"))
    for worker in ("w1", "w2"):
        await expire_leases(store, "lost", "taken-over")
        await store.queue.reap()
        await claim_all(store, worker)
    late = end_of("taken-over", 2, epoch=1, first_sequence=3)
    good = end_of("taken-over", 2, epoch=3, first_sequence=3)
    assert await store.log.append([late, good, good]) == [False, True, True]
    await expire_leases(store, "lost")
    await store.queue.reap()

    total = await total_of(store)

    assert total == await total_of_responses(store, *names)
    assert (total.requests, total.output_tokens) == (5, 4 + 2 + 2)


async def test_usage_of_a_deleted_response_stays(store: Store) -> None:
    await enqueue(store, "a", tenant=TENANT)
    await claim_all(store)
    await store.responses.delete(RequestId("a"))

    await append(store, end_of("a", 2))

    assert await total_of(store) == Used(1, 3, 1, 2)


async def test_model_names_may_hold_the_separator(store: Store) -> None:
    await enqueue(store, "a", tenant=TENANT, user="", model="org/model:7b")
    await store.queue.cancel(RequestId("a"))

    (row,) = await rows_of(store)

    assert (row.user, row.model) == ("", "org/model:7b")


async def test_tenants_are_counted_apart(store: Store) -> None:
    await enqueue(store, "a", tenant=TENANT)
    await store.queue.cancel(RequestId("a"))

    assert await rows_of(store, "acme") == []
    assert len(await rows_of(store)) == 1


async def test_users_beyond_the_bound_of_a_day_are_counted_together(store: Store) -> None:
    await enqueue(store, "a", "b", tenant=TENANT, user="ann")
    await enqueue(store, "c", tenant=TENANT, user="bob")
    await store.queue.cancel(RequestId("a"))
    (key,) = await store.commands.call("KEYS", keys.FIRST.key(keys.USAGE + "*"))
    crowd = [word for i in range(20_000) for word in (f"filler:u{i}:m", 0)]
    await store.commands.call("HSET", key, *crowd)

    await store.queue.cancel(RequestId("b"))
    await store.queue.cancel(RequestId("c"))
    await store.commands.call("HDEL", key, *crowd[::2])

    rows = {row.user: row.used.requests for row in await rows_of(store)}
    assert rows == {"ann": 2, OTHER_USERS: 1}


async def test_day_is_kept_for_400_days(store: Store) -> None:
    await enqueue(store, "a", tenant=TENANT)
    await store.queue.cancel(RequestId("a"))

    (key,) = await store.commands.call("KEYS", keys.FIRST.key(keys.USAGE + "*"))
    assert 399 * 86_400 < await store.commands.call("TTL", key) <= 400 * 86_400


async def test_usage_survives_a_restart_of_the_store(
    own_server: EmbeddedServer, own_store: Store
) -> None:
    await enqueue(own_store, "a", tenant=TENANT)
    await claim_all(own_store)
    await append(own_store, end_of("a", 4))

    await own_server.stop()
    await own_server.start()

    assert await total_of(own_store) == Used(1, 3, 1, 4)


async def test_total_of_a_day_is_the_sum_of_its_rows(store: Store) -> None:
    await enqueue(store, "a", tenant=TENANT, user="ann")
    await enqueue(store, "b", tenant=TENANT, user="bob")
    await claim_all(store)
    await append(store, end_of("a", 5), end_of("b", 7))
    day = (await rows_of(store))[0].day

    totals = await store.usage.totals([TENANT, "nobody"], day)

    assert totals == [await total_of(store), Used()]
