"""A gateway's copy of the registered prompts: how fresh it is, and what it asks the store."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from gateway.gateway_helpers import eventually

from chatserve.errors import StoreError
from chatserve.gateway import prompt_registry
from chatserve.gateway.prompt_registry import PromptRegistry
from chatserve.store.connection import Store, open_store
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.prompts import Prompts


class CountedPrompts:
    """The registry of a store, with a count of what was read and failures that a test asks for."""

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts
        self.num_reads = 0
        self.num_failures = 0

    async def get(self, *place: Any) -> NamedPrompt | None:
        self.num_reads += 1
        return await self._prompts.get(*place)

    async def list(self) -> list[NamedPrompt]:
        if self.num_failures:
            self.num_failures -= 1
            raise StoreError("away")
        return await self._prompts.list()

    async def wait_for_change(self, cursor: str, block_ms: int) -> str:
        return await self._prompts.wait_for_change(cursor, block_ms)


@pytest_asyncio.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    store = await open_store(store_url)
    yield store
    await store.aclose()


@pytest_asyncio.fixture
async def prompts(store: Store) -> CountedPrompts:
    return CountedPrompts(store.prompts)


@pytest_asyncio.fixture
async def registry(prompts: CountedPrompts) -> AsyncIterator[PromptRegistry]:
    registry = PromptRegistry(prompts)  # type: ignore[arg-type]
    yield registry
    await registry.aclose()


def make_prompt(text: str, tenant: str = "acme", name: str = "help") -> NamedPrompt:
    return NamedPrompt(tenant, name, text)


async def test_what_was_there_before_is_known_at_once(
    store: Store, registry: PromptRegistry
) -> None:
    added = await store.prompts.add(make_prompt("one"))
    preamble = await store.prompts.add(make_prompt("Be kind.", "", "preamble"))

    await registry.start()

    assert registry.current("acme", "help") == added
    assert registry.of_tenant("acme") == [added]
    assert registry.preamble == preamble.text
    assert registry.current("zeta", "help") is None
    assert registry.of_tenant("zeta") == []


async def test_it_follows_the_bell(store: Store, registry: PromptRegistry) -> None:
    await registry.start()

    added = await store.prompts.add(make_prompt("one"))
    await eventually(lambda: registry.current("acme", "help") == added)
    await store.prompts.remove("acme", "help")

    await eventually(lambda: registry.current("acme", "help") is None)


async def test_while_the_store_is_away_the_last_known_prompts_stay(
    store: Store,
    registry: PromptRegistry,
    prompts: CountedPrompts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prompt_registry, "RETRY_S", 0.01)
    first = await store.prompts.add(make_prompt("one"))
    await registry.start()
    prompts.num_failures = many = 10**6

    second = await store.prompts.add(make_prompt("two"))
    await eventually(lambda: prompts.num_failures < many)
    kept = registry.current("acme", "help")
    prompts.num_failures = 0

    assert kept == first
    await eventually(lambda: registry.current("acme", "help") == second)


async def test_what_was_read_earlier_does_not_replace_what_was_read_later(
    store: Store, registry: PromptRegistry, prompts: CountedPrompts
) -> None:
    read, go_on, reading = prompts.list, asyncio.Event(), asyncio.Event()

    async def slow() -> list[NamedPrompt]:
        found = await read()
        if not found:
            reading.set()
            await go_on.wait()
        return found

    prompts.list = slow  # type: ignore[method-assign]
    early = asyncio.create_task(registry.reload())
    await reading.wait()
    added = await store.prompts.add(make_prompt("one"))
    late = asyncio.create_task(registry.reload())
    go_on.set()
    await asyncio.gather(early, late)

    assert registry.all() == [added]


async def test_an_older_version_is_read_once_until_the_registry_changes(
    store: Store, registry: PromptRegistry, prompts: CountedPrompts
) -> None:
    first = await store.prompts.add(make_prompt("one"))
    second = await store.prompts.add(make_prompt("two"))
    await registry.reload()

    found = [await registry.version("acme", "help", number) for number in (1, 1, 2, 1)]
    num_reads = prompts.num_reads
    await store.prompts.remove_version("acme", "help", 1)
    await registry.reload()

    assert found == [first, first, second, first]
    assert num_reads == 1
    assert await registry.version("acme", "help", 1) is None


async def test_an_older_version_that_is_removed_while_it_is_read_is_not_remembered(
    store: Store, registry: PromptRegistry, prompts: CountedPrompts
) -> None:
    await store.prompts.add(make_prompt("one"))
    await store.prompts.add(make_prompt("two"))
    await registry.reload()
    read, go_on = prompts.get, asyncio.Event()

    async def slow(*place: Any) -> NamedPrompt | None:
        found = await read(*place)
        await go_on.wait()
        return found

    prompts.get = slow  # type: ignore[method-assign]
    reading = asyncio.create_task(registry.version("acme", "help", 1))
    await eventually(lambda: prompts.num_reads == 1)
    await store.prompts.remove_version("acme", "help", 1)
    await registry.reload()
    go_on.set()
    await reading

    assert await registry.version("acme", "help", 1) is None


async def test_of_a_prompt_that_is_not_there_no_version_is_looked_for(
    registry: PromptRegistry, prompts: CountedPrompts
) -> None:
    await registry.reload()

    assert await registry.version("acme", "help", 1) is None

    assert prompts.num_reads == 0


async def test_what_is_remembered_of_older_versions_is_bounded(
    store: Store, registry: PromptRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_registry, "MAX_OLD_VERSIONS", 1)
    added = [await store.prompts.add(make_prompt(text)) for text in ("one", "two", "three")]
    await registry.reload()

    found = [await registry.version("acme", "help", number) for number in (1, 2, 1, 3)]

    assert found == [added[0], added[1], added[0], added[2]]
