"""Logins and tickets: what stands for a key for a while."""

import asyncio

from chatserve.store import keys
from chatserve.store.api_keys import Grant, digest_of
from chatserve.store.connection import Store
from chatserve.store.logins import LOGIN_TTL_S, TICKET_TTL_S

GRANT = Grant("0123456789abcdef", "d" * 64)


async def ttl_of(store: Store, kind: str, token: str) -> int:
    ttl: int = await store.commands.call("TTL", keys.GLOBAL.key(kind + digest_of(token)))
    return ttl


async def test_a_login_stands_for_its_grant_until_it_is_ended(store: Store) -> None:
    token = await store.logins.begin(GRANT)

    assert await store.logins.find(token) == GRANT
    await store.logins.end(token)
    await store.logins.end(token)

    assert await store.logins.find(token) is None


async def test_a_login_lasts_anew_with_every_use(store: Store) -> None:
    token = await store.logins.begin(GRANT)
    await store.commands.call("EXPIRE", keys.GLOBAL.key(keys.LOGIN + digest_of(token)), 100)

    await store.logins.find(token)

    assert LOGIN_TTL_S - 10 < await ttl_of(store, keys.LOGIN, token) <= LOGIN_TTL_S


async def test_a_ticket_is_redeemed_once_however_many_try(store: Store) -> None:
    ticket = await store.logins.issue_ticket(GRANT)
    ttl_s = await ttl_of(store, keys.TICKET, ticket)

    redeemed = await asyncio.gather(*(store.logins.redeem_ticket(ticket) for _ in range(8)))

    assert 0 < ttl_s <= TICKET_TTL_S
    assert [each for each in redeemed if each is not None] == [GRANT]


async def test_a_ticket_is_no_login_and_a_login_no_ticket(store: Store) -> None:
    token = await store.logins.begin(GRANT)
    ticket = await store.logins.issue_ticket(GRANT)

    assert await store.logins.find(ticket) is None
    assert await store.logins.redeem_ticket(token) is None
    assert await store.logins.find("csl_" + "x" * 10_000) is None
    assert await store.logins.redeem_ticket("cst_") is None


async def test_the_store_holds_digests_and_no_tokens(store: Store) -> None:
    token = await store.logins.begin(GRANT)
    ticket = await store.logins.issue_ticket(GRANT)

    names = await store.commands.call("KEYS", "*")

    assert len(names) == 2
    assert not any(token[4:] in name or ticket[4:] in name for name in names)
