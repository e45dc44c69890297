"""Connections are counted over all gateways, and forgotten with the gateway that had them."""

import asyncio

from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.connection_leases import LEASE_MS, ConnectionScope, CountedConnection

TENANT = ConnectionScope("tenant:org", 2)
KEY = ConnectionScope("key:k1", 1)


def connection(name: str, *scopes: ConnectionScope) -> CountedConnection:
    return CountedConnection(name, "org", scopes)


async def expire(store: Store, scope: ConnectionScope, *names: str) -> None:
    """Make leases run out now, without waiting for it."""
    for name in names:
        await store.commands.call("ZADD", keys.FIRST.key(f"connections:{scope.name}"), 1, name)


async def test_connection_counts_for_tenant_and_key_until_it_is_released(store: Store) -> None:
    first, second = connection("a", TENANT, KEY), connection("b", TENANT, KEY)

    assert await store.connections.take(first) is None
    assert await store.connections.take(second) == KEY
    assert await store.connections.take(connection("c", TENANT)) is None
    assert await store.connections.take(connection("d", TENANT)) == TENANT
    await store.connections.release(first)
    assert await store.connections.take(second) is None


async def test_fifty_at_once_do_not_pass_the_limit(store: Store) -> None:
    taken = await asyncio.gather(
        *(store.connections.take(connection(f"c{i}", TENANT)) for i in range(50))
    )

    assert taken.count(None) == TENANT.limit


async def test_connection_that_nobody_renews_counts_no_longer(store: Store) -> None:
    await store.connections.take(connection("dead", KEY))
    await expire(store, KEY, "dead")

    assert await store.connections.take(connection("a", KEY)) is None


async def test_renewed_connection_counts_on_and_a_lost_one_again(store: Store) -> None:
    held = [connection("a", TENANT), connection("b", TENANT)]
    for each in held:
        await store.connections.take(each)
    await expire(store, TENANT, "a")
    await store.commands.call("ZREM", keys.FIRST.key(f"connections:{TENANT.name}"), "b")

    await store.connections.renew(held)

    assert await store.connections.take(connection("c", TENANT)) == TENANT


async def test_renewing_many_is_split_and_renews_all(store: Store) -> None:
    wide = ConnectionScope("tenant:org", 1200)

    await store.connections.renew(connection(f"c{i}", wide) for i in range(1200))

    assert await store.connections.take(connection("one-more", wide)) == wide


async def test_repetition_of_a_connection_counts_once(store: Store) -> None:
    for _ in range(2):
        assert await store.connections.take(connection("a", KEY)) is None


async def test_counts_vanish_with_the_last_lease(store: Store) -> None:
    await store.connections.take(connection("a", KEY))

    ttl_ms = await store.commands.call("PTTL", keys.FIRST.key(f"connections:{KEY.name}"))

    assert 0 < ttl_ms <= LEASE_MS
