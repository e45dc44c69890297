"""The tenants: what is stored, what is refused, and the bell that tells of changes."""

import asyncio
from dataclasses import replace

import pytest

from chatserve.errors import Conflict, InvalidRequest
from chatserve.store import tenants
from chatserve.store.connection import Store
from chatserve.store.tenant_bell import AccessNews
from chatserve.store.tenants import Quotas, Tenant

QUOTAS = Quotas(requests_per_minute=60, connections=5, pinned_pages=0)
BLOCK_MS = 20


async def test_a_tenant_is_read_as_it_was_added(store: Store) -> None:
    tenant = Tenant("acme", quotas=QUOTAS, models=("tiny", "org/large:v2"))

    added = await store.tenants.add(tenant)

    assert replace(added, created_at=0, mark="") == tenant
    assert added.created_at > 1_700_000_000
    assert await store.tenants.get("acme") == added
    assert await store.tenants.list(10) == [added]


async def test_a_store_without_tenants_says_so(store: Store) -> None:
    assert not await store.tenants.any()
    await store.tenants.add(Tenant("acme"))

    assert await store.tenants.any()
    assert await store.tenants.get("other") is None


async def test_of_two_that_add_one_name_at_once_one_is_refused(store: Store) -> None:
    rivals = [store.tenants.add(Tenant("acme")) for _ in range(8)]

    results = await asyncio.gather(*rivals, return_exceptions=True)

    assert sum(isinstance(result, Tenant) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 7


async def test_the_list_goes_by_name_and_in_pages(store: Store) -> None:
    for name in ("b", "a", "c.1", "B"):
        await store.tenants.add(Tenant(name))

    first = await store.tenants.list(3)
    rest = await store.tenants.list(3, after=first[-1].name)

    assert [tenant.name for tenant in (*first, *rest)] == ["B", "a", "b", "c.1"]
    assert len(first) == 3


async def test_a_page_goes_on_after_a_tenant_that_is_gone(store: Store) -> None:
    for name in ("a", "b", "c"):
        await store.tenants.add(Tenant(name))
    await store.tenants.forget("b")

    assert [tenant.name for tenant in await store.tenants.list(3, after="b")] == ["c"]


async def test_an_update_changes_what_is_given_and_nothing_else(store: Store) -> None:
    added = await store.tenants.add(Tenant("acme", quotas=QUOTAS, models=("tiny",)))

    renamed = await store.tenants.update("acme", models=())
    limited = await store.tenants.update("acme", quotas=Quotas(connections=1))

    assert renamed == replace(added, models=())
    assert limited == replace(added, models=(), quotas=Quotas(connections=1))
    assert await store.tenants.update("other", models=()) is None


async def test_models_that_are_named_are_the_only_ones(store: Store) -> None:
    tenant = Tenant("acme", models=("tiny",))

    assert tenant.may_use("tiny")
    assert not tenant.may_use("large")
    assert Tenant("acme").may_use("large")


@pytest.mark.parametrize("name", ["", "a/b", "{a}", "-a", "a b", "ü", "a" * 65, "a\n"], ids=ascii)
async def test_hostile_names_are_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        await store.tenants.add(Tenant(name))

    assert refusal.value.param == "name"
    assert not await store.tenants.any()


@pytest.mark.parametrize(
    ("tenant", "param"),
    [
        (Tenant("acme", quotas=Quotas(connections=-1)), "quotas.connections"),
        (Tenant("acme", quotas=Quotas(tokens_per_minute=10**13)), "quotas.tokens_per_minute"),
        (Tenant("acme", models=("",)), "models"),
        (Tenant("acme", models=("a\x00",)), "models"),
        (Tenant("acme", models=("m",) * 65), "models"),
    ],
    ids=str,
)
async def test_numbers_and_models_out_of_range_are_refused(
    store: Store, tenant: Tenant, param: str
) -> None:
    await store.tenants.add(Tenant("other"))

    with pytest.raises(InvalidRequest) as refusal:
        await store.tenants.add(tenant)
    with pytest.raises(InvalidRequest):
        await store.tenants.update("other", quotas=tenant.quotas, models=tenant.models)

    assert refusal.value.param == param


async def test_there_is_a_bounded_number_of_tenants(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants, "MAX_TENANTS", 2)
    for name in ("a", "b"):
        await store.tenants.add(Tenant(name))

    with pytest.raises(Conflict, match="2 tenants") as refusal:
        await store.tenants.add(Tenant("c"))

    assert refusal.value.code == "too_many_tenants"


async def test_a_closed_tenant_cannot_be_changed_or_added_until_it_is_forgotten(
    store: Store,
) -> None:
    await store.tenants.add(Tenant("acme"))

    assert await store.tenants.close("acme")
    assert await store.tenants.close("acme")
    assert not await store.tenants.close("other")

    closed = await store.tenants.get("acme")
    assert closed is not None
    assert closed.is_closed
    assert await store.tenants.update("acme", models=("tiny",)) is None
    with pytest.raises(Conflict, match="there is a tenant 'acme'") as refusal:
        await store.tenants.add(Tenant("acme"))
    assert refusal.value.code == "tenant_exists"
    await store.tenants.forget("acme")
    assert not (await store.tenants.add(Tenant("acme"))).is_closed


async def test_every_change_is_told_in_order(store: Store) -> None:
    cursor, before = await store.tenant_bell.history()
    await store.tenants.add(Tenant("acme"))
    await store.tenants.update("acme", models=("tiny",))
    await store.tenants.close("acme")

    cursor, news = await store.tenant_bell.wait(cursor, 5_000)

    assert before == []
    assert news == [
        AccessNews("acme", "", is_revoked=False),
        AccessNews("acme", "", is_revoked=False),
        AccessNews("acme", "", is_revoked=True),
    ]
    assert await store.tenant_bell.history() == (cursor, news)
    assert await store.tenant_bell.wait(cursor, BLOCK_MS) == (cursor, [])


async def test_whoever_waits_for_news_is_woken(store: Store) -> None:
    waiting = asyncio.create_task(store.tenant_bell.wait("0-0", 60_000))

    await store.tenants.add(Tenant("acme"))

    async with asyncio.timeout(10):
        _, news = await waiting
    assert [each.tenant for each in news] == ["acme"]
