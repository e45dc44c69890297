"""Removing a tenant from the store: everything goes, in pieces, and again does no harm."""

import asyncio
import time
from typing import Any

import pytest
from store.store_helpers import LEASE_MS, MODEL, make_record, make_request

from chatserve.engine.api import RequestId
from chatserve.errors import StoreError
from chatserve.identity import Owner
from chatserve.store import keys
from chatserve.store.api_keys import ApiKey
from chatserve.store.connection import Store
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.sessions import Message, SessionTurn
from chatserve.store.tenant_removal import Removed, remove_tenant
from chatserve.store.tenants import Tenant

TTL_S = 7200


def id_of(kind: str, tenant: str, name: object = "") -> str:
    """Return an id that leads to the partition of a tenant."""
    return f"{kind}_{keys.digit_of(tenant):x}{tenant}{name}"


def index_of(store: Store) -> str:
    return store.partitions.of_tenant("acme").key(keys.RESPONSES + "acme")


async def add_response(store: Store, tenant: str, name: str = "", ttl_s: int = TTL_S) -> None:
    response_id = id_of("resp", tenant, name)
    request = make_request(response_id, tenant=tenant)
    await store.queue.enqueue(request, make_record(response_id, ttl_s=ttl_s), max_queue=100)


async def fill(store: Store, tenant: str, num_users: int = 1) -> None:
    """Give a tenant one of everything, and a session for each of some users."""
    await store.tenants.add(Tenant(tenant))
    await store.api_keys.add(ApiKey("", tenant, "bob"))
    await store.prompts.add(NamedPrompt(tenant, "support", "Be kind."))
    await asyncio.gather(
        *(
            store.sessions.create(Owner(tenant, f"user{number}"), id_of("conv", tenant, number))
            for number in range(num_users)
        )
    )
    await add_response(store, tenant)


async def test_all_that_a_tenant_has_is_erased_and_others_keep_theirs(store: Store) -> None:
    await fill(store, "acme")
    await fill(store, "zeta")

    removed = await remove_tenant(store, "acme")

    assert removed == Removed(num_keys=1, num_prompts=1, num_sessions=1, num_responses=1)
    names = await store.commands.call("KEYS", "*")
    assert not [name for name in names if "acme" in name and ":usage:" not in name]
    assert [each.tenant for each in await store.prompts.list()] == ["zeta"]
    assert await store.sessions.get(id_of("conv", "zeta", 0)) is not None
    assert await store.responses.get(RequestId(id_of("resp", "zeta"))) is not None
    assert len(await store.api_keys.list(10, tenant="zeta")) == 1


async def test_more_than_one_piece_is_erased_as_well(store: Store) -> None:
    await fill(store, "acme", num_users=60)
    for number in range(60):
        await store.sessions.create(Owner("acme", "user7"), id_of("more", "acme", number))

    removed = await remove_tenant(store, "acme")

    assert removed is not None
    assert removed.num_sessions == 120
    assert await store.tenant_contents.users("acme", 10) == []


async def test_a_removal_that_broke_off_goes_on_when_it_is_asked_for_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store, "acme")

    async def fail(*_: Any) -> bool:
        raise StoreError("the store failed")

    with monkeypatch.context() as patched:
        patched.setattr(store.responses, "delete", fail)
        with pytest.raises(StoreError):
            await remove_tenant(store, "acme")
    broken_off = await store.tenants.get("acme")
    removed = await remove_tenant(store, "acme")

    assert broken_off is not None
    assert broken_off.is_closed
    assert removed == Removed(num_keys=0, num_prompts=0, num_sessions=0, num_responses=1)
    assert not await store.tenants.any()


async def test_an_unknown_tenant_cannot_be_removed(store: Store) -> None:
    assert await remove_tenant(store, "acme") is None


async def test_what_waits_in_the_queue_is_not_run_any_more(store: Store) -> None:
    await fill(store, "acme")

    await remove_tenant(store, "acme")

    assert await store.queue.claim("worker", MODEL, 10, LEASE_MS) == []


async def test_the_index_lives_as_long_as_what_stands_in_it(store: Store) -> None:
    await add_response(store, "acme", "long")
    await add_response(store, "acme", "short", ttl_s=60)

    ttl_s = await store.commands.call("TTL", index_of(store))

    assert TTL_S < ttl_s <= TTL_S + keys.IDLE_TTL_S


async def test_responses_that_live_shortly_are_erased_as_well(store: Store) -> None:
    """They were left to run out, and could be read by whoever got the tenant's name next."""
    await store.tenants.add(Tenant("acme"))
    await add_response(store, "acme", "ended", ttl_s=60)
    response_id = RequestId(id_of("resp", "acme", "ended"))
    await store.queue.cancel(response_id)
    gone_ms = await store.commands.call("ZSCORE", index_of(store), response_id)

    removed = await remove_tenant(store, "acme")

    assert removed is not None
    assert removed.num_responses == 1
    assert not [name for name in await store.commands.call("KEYS", "*") if response_id in name]
    assert float(gone_ms) / 1000 - time.time() == pytest.approx(60, abs=5)


async def test_answers_of_a_session_stand_in_the_index_while_they_run(store: Store) -> None:
    session_id, response_id = id_of("conv", "acme"), RequestId(id_of("resp", "acme"))
    await store.sessions.create(Owner("acme", "bob"), session_id)
    request = make_request(response_id, tenant="acme")
    record = make_record(response_id, session_id=session_id)
    turn = SessionTurn(session_id, (Message("msg", "user", "Hi", 1),))
    await store.queue.enqueue(request, record, max_queue=100, turn=turn)

    running = await store.tenant_contents.responses("acme", 10)
    await store.queue.cancel(response_id)

    assert running == [response_id]
    assert await store.tenant_contents.responses("acme", 10) == []


async def test_responses_that_have_run_out_leave_the_index(store: Store) -> None:
    await add_response(store, "acme", "old")
    old = id_of("resp", "acme", "old")
    await store.commands.call("ZADD", index_of(store), "XX", 1, old)

    await add_response(store, "acme", "new")

    assert await store.tenant_contents.responses("acme", 10) == [id_of("resp", "acme", "new")]
