"""What a gateway remembers of keys and tenants, also while its store is away."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from chatserve.errors import StoreError
from chatserve.gateway.directory import Directory
from chatserve.store import keys
from chatserve.store.api_keys import ApiKey, Grant, parse_secret
from chatserve.store.connection import Store, open_store
from chatserve.store.tenants import Quotas, Tenant


@pytest_asyncio.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    store = await open_store(store_url)
    yield store
    await store.aclose()


@pytest_asyncio.fixture
async def directory(store: Store) -> AsyncIterator[Directory]:
    directory = Directory(store, may_be_open=True)
    await directory.start()
    yield directory
    await directory.aclose()


async def issue(store: Store) -> Grant:
    if await store.tenants.get("acme") is None:
        await store.tenants.add(Tenant("acme"))
    grant = parse_secret((await store.api_keys.add(ApiKey("", "acme", "bob"))).secret)
    assert grant is not None
    return grant


async def hear_all(store: Store, directory: Directory) -> None:
    """Return once the directory has heard of all that was changed before, in order."""
    before = await directory.tenant("last")
    await store.tenants.add(Tenant("last", quotas=Quotas(connections=1)))
    async with asyncio.timeout(2):
        while await directory.tenant("last") == before:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.005)


async def fail(*_: Any, **__: Any) -> Any:
    raise StoreError("the store is away")


def counted(call: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    async def count(*command: Any, **options: Any) -> Any:
        calls.append(command[0])
        return await call(*command, **options)

    return count


async def test_a_grant_is_looked_up_once_and_remembered(
    store: Store, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = await issue(store)
    calls: list[str] = []
    monkeypatch.setattr(store.commands, "call", counted(store.commands.call, calls))

    found = await asyncio.gather(*(directory.find(grant) for _ in range(3)))
    async with asyncio.timeout(2):
        # Until the bells of the issue have been heard, what was found before is forgotten.
        while "HGETALL" in calls:
            calls.clear()
            found.append(await directory.find(grant))

    assert len({account.key if account else None for account in found}) == 1
    assert found[0] is not None


async def test_while_the_store_is_away_the_known_are_let_in_and_others_wait(
    store: Store, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, unknown = await issue(store), await issue(store)
    await hear_all(store, directory)
    over: list[str] = []
    async with directory.watching(known, lambda: over.append("known")):
        with monkeypatch.context() as patched:
            patched.setattr(store.commands, "call", fail)
            account = await directory.find(known)
            with pytest.raises(StoreError):
                await directory.find(unknown)

    assert account is not None
    assert over == []


async def test_a_change_of_a_tenant_is_known_at_once(store: Store, directory: Directory) -> None:
    await store.tenants.add(Tenant("acme"))
    before = await directory.tenant("acme")

    await store.tenants.update("acme", quotas=Quotas(connections=1), models=["tiny"])

    async with asyncio.timeout(2):
        while (changed := await directory.tenant("acme")) == before:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.005)
    assert changed.quotas.connections == 1
    assert not changed.may_use("large")


async def test_a_tenant_that_nobody_made_has_no_limits(directory: Directory) -> None:
    assert await directory.tenant("default") == Tenant("default")


async def test_a_grant_that_is_over_before_it_is_watched_is_told_all_the_same(
    store: Store, directory: Directory
) -> None:
    grant = await issue(store)
    await store.api_keys.revoke(grant.key_id)
    over = asyncio.Event()

    async with directory.watching(grant, over.set), asyncio.timeout(10):
        await over.wait()


async def test_whoever_has_left_is_not_called(store: Store, directory: Directory) -> None:
    grant = await issue(store)
    over = asyncio.Event()
    left: list[str] = []

    async with directory.watching(grant, over.set):
        async with directory.watching(grant, lambda: left.append("called")):
            pass
        await store.api_keys.revoke(grant.key_id)
        async with asyncio.timeout(10):
            await over.wait()

    assert left == []


async def test_a_bell_that_was_missed_while_the_store_was_away_is_made_up_for(
    store: Store, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = await issue(store)
    over, failed = asyncio.Event(), asyncio.Event()

    async def fail_once(*_: Any, **__: Any) -> Any:
        failed.set()
        monkeypatch.undo()
        raise StoreError("the store is away")

    async with directory.watching(grant, over.set):
        monkeypatch.setattr(store.tenant_bell, "wait", fail_once)
        # Revoked without a bell, as if its entry were lost.
        await store.commands.call("DEL", keys.GLOBAL.key(keys.API_KEY + grant.key_id))
        async with asyncio.timeout(10):
            await over.wait()

    assert failed.is_set()


async def test_a_service_that_may_not_be_open_never_is(store: Store) -> None:
    directory = Directory(store, may_be_open=False)
    await directory.start()

    is_open = directory.is_open
    await directory.aclose()

    assert not is_open
