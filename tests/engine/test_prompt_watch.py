"""From the registry to the pool and back: what a worker does with registered prompts."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from engine.prompt_helpers import (
    PAGE_SIZE,
    WORKER_ID,
    PinningEngine,
    ask,
    pinning_worker,
    status_of,
    wait_until_forgotten,
)
from gateway.fake_model import make_card

from chatserve.cache.scope_map import CacheScope
from chatserve.engine.api import KeptPrefix, PrefixReport, PrefixState
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.prompt_watch import PromptWatch
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.tenants import Quotas, Tenant

PREAMBLE = "You answer for everybody here, politely and in whole sentences."
TEXT = "You are the help desk of a small library. Books are renewed at the desk."
SYSTEM = f"{PREAMBLE}\n\n{TEXT}"

SUPPORT = NamedPrompt("acme", "support", TEXT)
PUBLIC = NamedPrompt("", "preamble", PREAMBLE)

NO_SYSTEM_ROLE = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{{ messages[0]['content'] }}"
)


async def test_a_registered_prompt_is_cached_from_its_first_request_on(store: Store) -> None:
    async with pinning_worker(store) as engine:
        prompt = await store.prompts.add(SUPPORT)
        status = await status_of(store, prompt)
        usage = await ask(store, "acme", TEXT, "How long?")

    assert status.state is PrefixState.PINNED
    assert status.num_pages == -(-status.num_tokens // PAGE_SIZE)
    assert status.num_tokens > len(TEXT)
    assert usage.cached_tokens == status.num_tokens
    assert engine.stats().pages_pinned == status.num_pages


async def test_what_was_registered_before_the_worker_started_is_computed_too(store: Store) -> None:
    prompts = [await store.prompts.add(PUBLIC), await store.prompts.add(SUPPORT)]

    async with pinning_worker(store):
        preamble, support = [await status_of(store, prompt) for prompt in prompts]
        usage = await ask(store, "acme", SYSTEM, "How long?")

    assert preamble.state is support.state is PrefixState.PINNED
    assert preamble.num_tokens == 1 + len(f"system\n{PREAMBLE}")
    assert usage.cached_tokens == support.num_tokens > preamble.num_tokens


async def test_another_tenant_gains_the_preamble_and_nothing_else(store: Store) -> None:
    async with pinning_worker(store):
        preamble = await status_of(store, await store.prompts.add(PUBLIC))
        support = await status_of(store, await store.prompts.add(SUPPORT))

        ours = await ask(store, "acme", SYSTEM, "How long?")
        theirs = await ask(store, "zeta", SYSTEM, "How long?")

    assert ours.cached_tokens == support.num_tokens
    assert theirs.cached_tokens == preamble.num_tokens


async def test_without_a_preamble_another_tenant_finds_nothing_of_a_registered_prompt(
    store: Store,
) -> None:
    async with pinning_worker(store):
        await status_of(store, await store.prompts.add(SUPPORT))

        theirs = await ask(store, "zeta", TEXT, "How long?")

    assert theirs.cached_tokens == 0


async def test_a_removed_prompt_leaves_pool_and_disk(store: Store, tmp_path: Path) -> None:
    async with pinning_worker(store, PinningEngine(tmp_path)) as engine:
        await status_of(store, await store.prompts.add(SUPPORT))
        saved = os.listdir(tmp_path)

        await store.prompts.remove("acme", "support")
        await wait_until_forgotten(store, SUPPORT)
        usage = await ask(store, "acme", TEXT, "How long?")

    assert len(saved) == 1
    assert os.listdir(tmp_path) == []
    assert usage.cached_tokens == 0
    assert engine.stats().pages_pinned == 0


async def test_after_a_restart_pinned_prompts_come_from_disk_and_nothing_is_computed(
    store: Store, tmp_path: Path
) -> None:
    prompts = [await store.prompts.add(PUBLIC), await store.prompts.add(SUPPORT)]
    async with pinning_worker(store, PinningEngine(tmp_path), "before"):
        before = [await status_of(store, prompt, "before") for prompt in prompts]

    async with pinning_worker(store, PinningEngine(tmp_path), "after") as engine:
        after = [await status_of(store, prompt, "after") for prompt in prompts]
        num_steps = engine.stats().num_steps
        usage = await ask(store, "acme", SYSTEM, "How long?")

    assert [status.is_restored for status in before] == [False, False]
    assert [status.is_restored for status in after] == [True, True]
    assert num_steps == 0
    assert usage.cached_tokens == after[1].num_tokens


async def test_a_changed_preamble_moves_every_prompt_behind_it(store: Store) -> None:
    async with pinning_worker(store) as engine:
        await store.prompts.add(PUBLIC)
        support = await store.prompts.add(SUPPORT)
        first = await status_of(store, support)

        changed = await store.prompts.add(replace(PUBLIC, text=f"{PREAMBLE} Be brief."))
        preamble = await status_of(store, changed)
        usage = await ask(store, "acme", f"{changed.text}\n\n{TEXT}", "How long?")

    assert usage.cached_tokens == first.num_tokens + len(" Be brief.")
    assert engine.stats().pages_pinned <= preamble.num_pages + first.num_pages


async def test_a_replaced_text_is_told_apart_from_the_one_before(store: Store) -> None:
    async with pinning_worker(store):
        first = await status_of(store, await store.prompts.add(SUPPORT))

        second = await status_of(store, await store.prompts.add(replace(SUPPORT, text=TEXT * 2)))
        old = await ask(store, "acme", TEXT, "How long?")

    assert second.num_tokens == first.num_tokens + len(TEXT)
    assert old.cached_tokens < first.num_tokens


async def test_the_same_text_added_again_is_not_computed_again(store: Store) -> None:
    async with pinning_worker(store) as engine:
        first = await status_of(store, await store.prompts.add(SUPPORT))
        num_steps = engine.stats().num_steps

        again = await store.prompts.add(SUPPORT)
        second = await status_of(store, again)

        assert engine.stats().num_steps == num_steps
    assert second == replace(first, revision=again.revision)


async def test_a_prompt_over_its_tenants_quota_is_refused_with_sizes_and_still_works(
    store: Store,
) -> None:
    async with pinning_worker(store, PinningEngine(tenant_pinned_pages=2)) as engine:
        status = await status_of(store, await store.prompts.add(SUPPORT))
        first = await ask(store, "acme", TEXT, "How long?")
        second = await ask(store, "acme", TEXT, "Why?")

    assert status.state is PrefixState.REFUSED
    assert status.reason == (
        f"it needs {status.num_pages} more pages, with 2 left of 2 that a tenant may pin"
    )
    assert engine.stats().pages_pinned == 0
    assert (first.cached_tokens, second.cached_tokens) == (0, status.num_tokens)


async def test_a_quota_of_its_tenant_bounds_what_a_prompt_may_pin(store: Store) -> None:
    await store.tenants.add(Tenant("acme", quotas=Quotas(pinned_pages=3)))
    async with pinning_worker(store, PinningEngine(tenant_pinned_pages=64)):
        status = await status_of(store, await store.prompts.add(SUPPORT))

    assert status.state is PrefixState.REFUSED
    assert status.reason is not None
    assert "with 3 left of 3 that a tenant may pin" in status.reason


async def test_a_refused_prompt_that_is_added_again_is_tried_again(store: Store) -> None:
    """It used to be told the old refusal, although another prompt had made room meanwhile."""
    other = replace(SUPPORT, name="other", text=TEXT[::-1])
    async with pinning_worker(store, PinningEngine(tenant_pinned_pages=8)):
        await status_of(store, await store.prompts.add(other))
        refused = await status_of(store, await store.prompts.add(SUPPORT))
        await store.prompts.remove("acme", "other")

        again = await status_of(store, await store.prompts.add(SUPPORT))

    assert refused.state is PrefixState.REFUSED
    assert again.state is PrefixState.PINNED


async def test_a_prompt_that_is_not_pinned_is_computed_and_may_go(store: Store) -> None:
    async with pinning_worker(store) as engine:
        prompt = await store.prompts.add(replace(SUPPORT, is_pinned=False, priority=2, ttl_s=60.0))
        status = await status_of(store, prompt)
        usage = await ask(store, "acme", TEXT, "How long?")

    assert status.state is PrefixState.CACHED
    assert usage.cached_tokens == status.num_tokens
    assert engine.stats().pages_pinned == 0


async def test_a_template_without_a_system_role_refuses_in_its_own_words(store: Store) -> None:
    card = replace(make_card(), chat_template=NO_SYSTEM_ROLE)

    async with pinning_worker(store, PinningEngine(card=card)):
        status = await status_of(store, await store.prompts.add(SUPPORT))

    assert status.state is PrefixState.REFUSED
    assert status.reason is not None
    assert status.reason.endswith("refuses the conversation: System role not supported")
    assert (status.num_tokens, status.num_pages) == (0, 0)


async def test_a_template_that_cannot_be_compiled_refuses_and_the_worker_lives(
    store: Store,
) -> None:
    card = replace(make_card(), chat_template="{% if %}")

    async with pinning_worker(store, PinningEngine(card=card)):
        first = await status_of(store, await store.prompts.add(SUPPORT))
        second = await status_of(store, await store.prompts.add(SUPPORT))

    assert first.state is second.state is PrefixState.REFUSED
    assert "cannot be compiled" in str(first.reason)


async def test_users_of_a_tenant_share_its_prompts_in_the_scope_of_users(store: Store) -> None:
    async with pinning_worker(store, PinningEngine(cache_scope=CacheScope.USER)):
        status = await status_of(store, await store.prompts.add(SUPPORT))
        usage = await ask(store, "acme", TEXT, "How long?")

    assert usage.cached_tokens == status.num_tokens


async def test_news_that_the_store_has_lost_are_told_again(store: Store) -> None:
    async with pinning_worker(store):
        prompt = await store.prompts.add(SUPPORT)
        before = await status_of(store, prompt)
        await store.prompt_news.write(WORKER_ID, [], 1)

        after = await status_of(store, prompt)

    assert after == before


async def test_a_store_that_was_away_costs_time_only(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    await server.start()
    store = await open_store(server.url)
    async with pinning_worker(store) as engine:
        first = await status_of(store, await store.prompts.add(SUPPORT))
        await server.stop()
        await server.start()

        second = await status_of(store, await store.prompts.add(replace(SUPPORT, name="other")))
        num_pages = engine.stats().pages_pinned

    await store.aclose()
    await server.stop()
    assert first.state is second.state is PrefixState.PINNED
    assert num_pages == first.num_pages


class SilentEngine:
    """Takes what it is to keep and says nothing of it."""

    def __init__(self) -> None:
        self.kept: asyncio.Queue[Sequence[KeptPrefix]] = asyncio.Queue()

    def keep_exactly(self, prefixes: Sequence[KeptPrefix]) -> None:
        self.kept.put_nowait(prefixes)

    async def next_prefix(self) -> KeptPrefix:
        """Return the only prefix that it is told to keep next."""
        async with asyncio.timeout(20):
            while not (kept := await self.kept.get()):
                pass
        (prefix,) = kept
        return prefix


async def test_news_of_a_replaced_text_are_not_taken_for_its_successors(store: Store) -> None:
    engine = SilentEngine()
    watch = PromptWatch(
        store, cast("EngineThread", engine), make_card(), WORKER_ID, renew_s=0.02, ttl_ms=500
    )
    tasks = [asyncio.create_task(repeat(body)) for body in watch.bodies.values()]
    await store.prompts.add(SUPPORT)
    old = await engine.next_prefix()
    replaced = await store.prompts.add(replace(SUPPORT, text="another"))
    new = await engine.next_prefix()

    watch.take([PrefixReport(old, PrefixState.PINNED, num_pages=7)])
    watch.take([PrefixReport(new, PrefixState.REFUSED, num_pages=2, reason="full")])

    status = await status_of(store, replaced)
    for task in tasks:
        task.cancel()
    assert (status.state, status.num_pages) == (PrefixState.REFUSED, 2)


async def repeat(body: Callable[[], Awaitable[None]]) -> None:
    while True:
        await body()


async def test_a_prompt_with_variables_is_cached_up_to_the_first_whatever_the_values_are(
    store: Store,
) -> None:
    before, after = "You are the help desk of ", " in {{town}}, and {{ this }} is text."
    letter = replace(SUPPORT, text=f"{before}{{{{name}}}}{after}")
    async with pinning_worker(store):
        status = await status_of(store, await store.prompts.add(letter))
        asked = [f"{before}{value}{after}" for value in ("Rome", "", "{{name}}", " ")]
        usages = [await ask(store, "acme", text, f"{n}?") for n, text in enumerate(asked)]

    assert status.state is PrefixState.PINNED
    assert len(before) <= status.num_tokens <= len(before) + len("<|im_start|>system\n")
    assert min(usage.cached_tokens for usage in usages) >= status.num_tokens
    assert usages[0].cached_tokens == status.num_tokens


async def test_a_version_that_is_activated_is_computed_and_the_other_let_go(store: Store) -> None:
    async with pinning_worker(store) as engine:
        first = await status_of(store, await store.prompts.add(SUPPORT))
        await status_of(store, await store.prompts.add(replace(SUPPORT, text=TEXT * 2)))

        back = await store.prompts.activate("acme", "support", 1)
        assert back is not None
        again = await status_of(store, back)
        usage = await ask(store, "acme", TEXT, "How long?")

    assert (again.state, again.num_tokens) == (PrefixState.PINNED, first.num_tokens)
    assert usage.cached_tokens == first.num_tokens
    assert engine.stats().pages_pinned == first.num_pages


async def test_an_older_version_works_and_is_not_kept(store: Store) -> None:
    async with pinning_worker(store) as engine:
        await store.prompts.add(SUPPORT)
        other = await store.prompts.add(replace(SUPPORT, text=TEXT[::-1]))
        status = await status_of(store, other)

        usage = await ask(store, "acme", TEXT, "How long?")

    assert usage.output_tokens > 0
    assert engine.stats().pages_pinned == status.num_pages


async def test_many_prompts_are_all_told_of(store: Store) -> None:
    prompts = await asyncio.gather(
        *(
            store.prompts.add(NamedPrompt(f"t{number % 8}", f"p{number}", f"{number}."))
            for number in range(60)
        )
    )

    async with pinning_worker(store, PinningEngine(num_pages=2048, max_pinned_pages=1024)):
        statuses = [await status_of(store, prompt) for prompt in prompts]

    assert {status.state for status in statuses} == {PrefixState.PINNED}
