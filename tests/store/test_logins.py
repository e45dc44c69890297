"""Logins and tickets: what stands for a key for a while."""

import asyncio
import time
from dataclasses import replace

from chatserve.store import keys
from chatserve.store.api_keys import Grant, digest_of
from chatserve.store.connection import Store
from chatserve.store.logins import LOGIN_TTL_S, MAX_LOGINS_OF_KEY, TICKET_TTL_S

GRANT = Grant("0123456789abcdef", "d" * 64)


async def ttl_of(store: Store, kind: str, token: str) -> int:
    ttl: int = await store.commands.call("TTL", keys.GLOBAL.key(kind + digest_of(token)))
    return ttl


async def test_a_login_stands_for_its_grant_until_it_is_ended(store: Store) -> None:
    token = await store.logins.begin(GRANT)

    grant = await store.logins.find(token)
    assert grant == replace(GRANT, login=digest_of(token))
    assert await store.logins.is_on(grant)
    await store.logins.end(token)
    await store.logins.end(token)

    assert await store.logins.find(token) is None
    assert not await store.logins.is_on(grant)
    _, news = await store.tenant_bell.history()
    assert [each.key_id for each in news] == [GRANT.key_id]


async def test_a_login_ends_in_the_end_however_often_it_is_used(store: Store) -> None:
    token = await store.logins.begin(GRANT)
    key = keys.GLOBAL.key(keys.LOGIN + digest_of(token))
    began_at = int(time.time()) - keys.LOGIN_MAX_AGE_S - 1

    await store.commands.call("SET", key, f"{began_at}:{GRANT.key_id}:{GRANT.digest}")

    assert await store.logins.find(token) is None
    assert not await store.logins.is_on(replace(GRANT, login=digest_of(token)))


async def test_the_oldest_of_too_many_logins_with_one_key_ends(store: Store) -> None:
    tokens = [await store.logins.begin(GRANT) for _ in range(MAX_LOGINS_OF_KEY + 2)]
    other = await store.logins.begin(replace(GRANT, key_id="f" * 16))

    are_on = [await store.logins.find(token) is not None for token in tokens]

    assert sum(are_on) == MAX_LOGINS_OF_KEY
    assert await store.logins.find(other) is not None


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

    assert len(names) == 3
    assert not any(token[4:] in name or ticket[4:] in name for name in names)
