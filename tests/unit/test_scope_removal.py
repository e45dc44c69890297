"""What is left of a tenant that was revoked, of a prompt and of a preamble that were removed.

Nothing, for whoever asks next; and nobody else notices.
"""

import pytest
from unit.cache_helpers import generate_alone, held_pages
from unit.scope_helpers import TenantRig, ask

from chatserve.cache.pins import PrefixName
from chatserve.cache.scope_map import CacheScope
from chatserve.engine.api import KeptPrefix

PREAMBLE = KeptPrefix("", "preamble", tuple(range(10, 20)))
PROMPT = KeptPrefix("A", "prompt", (*range(10, 20), *range(30, 41)))
"""A prompt of tenant A as chats have it: behind the preamble, and ending inside a page."""

OTHERS = list(range(60, 90))
every_cache_scope = pytest.mark.parametrize(
    "cache_scope", [CacheScope.TENANT, CacheScope.USER], ids=str
)


def behind(prefix: KeptPrefix, count: int = 12) -> list[int]:
    return [*prefix.token_ids, *range(100, 100 + count)]


# ── A tenant ─────────────────────────────────────────────────────────────────────────────────


def two_tenants(cache_scope: CacheScope) -> TenantRig:
    """Return a rig in which A and B have pinned prompts, conversations, and requests that run."""
    rig = TenantRig(cache_scope=cache_scope, num_pages=128)
    rig.keep(PREAMBLE, PROMPT, KeptPrefix("B", "prompt", PROMPT.token_ids))
    for tenant in "AB":
        rig.run(ask(f"{tenant} alone", OTHERS, tenant, max_tokens=6))
        rig.run(ask(f"{tenant} chat", behind(PROMPT), tenant, "ann", max_tokens=6))
        rig.add(ask(f"{tenant} runs", behind(PROMPT), tenant, "amy", max_tokens=20))
        rig.add(ask(f"{tenant} too", OTHERS, tenant, max_tokens=20))
    rig.step()
    return rig


@every_cache_scope
def test_nothing_of_a_revoked_tenant_is_left(cache_scope: CacheScope) -> None:
    rig = two_tenants(cache_scope)
    assert rig.cached_pages_of("A")

    rig.revoke("A")

    assert rig.cached_pages_of("A") == set()
    assert rig.cache.pins.num_pages_of("A") == 0
    assert {each.tenant for each in rig.scheduler.running} == {"B"}
    assert rig.scheduler.requests_of("A") == []


@every_cache_scope
def test_the_pages_of_a_revoked_tenant_are_free_at_once(cache_scope: CacheScope) -> None:
    rig = two_tenants(cache_scope)
    allocator = rig.cache.allocator
    held = {page for each in held_pages(*rig.scheduler.requests_of("A")) for page in each.page_ids}
    lost = (rig.cached_pages_of("A") | held) - rig.cached_pages_of("")
    num_free = allocator.num_free

    rig.revoke("A")

    assert allocator.num_free == num_free + len(lost)
    assert all(allocator.ref_count(page) == 0 for page in lost)


@every_cache_scope
def test_nobody_else_notices_that_a_tenant_was_revoked(cache_scope: CacheScope) -> None:
    rig = two_tenants(cache_scope)
    own = rig.cached_pages_of("B")

    rig.revoke("A")
    rig.run()
    again = [
        ask("1", [*OTHERS, 99], "B"),
        ask("2", [*behind(PROMPT), 99], "B", "ann"),
        ask("3", [*PROMPT.token_ids, 99], "B", "new"),
    ]
    rig.run(*again)

    assert own <= rig.cached_pages_of("B")
    assert [each.num_cached_tokens for each in again] == [30, 33, 21]
    for name, prompt in (("B runs", behind(PROMPT)), ("B too", OTHERS)):
        assert rig.outputs[name] == generate_alone(prompt, 20, rig.next_token)


@every_cache_scope
def test_a_tenant_of_the_same_name_begins_with_nothing(cache_scope: CacheScope) -> None:
    rig = two_tenants(cache_scope)
    rig.revoke("A")
    rig.run()
    again = [ask("1", OTHERS, "A"), ask("2", behind(PROMPT), "A", "ann")]

    rig.run(*again)

    assert [each.num_cached_tokens for each in again] == [0, len(PREAMBLE.token_ids)]


# ── A tenant's prompt ────────────────────────────────────────────────────────────────────────


@every_cache_scope
def test_a_removed_prompt_is_not_found_any_more_nor_what_was_built_on_it(
    cache_scope: CacheScope,
) -> None:
    rig = TenantRig(cache_scope=cache_scope)
    rig.keep(PREAMBLE, PROMPT)
    rig.run(ask("chat", behind(PROMPT), "A", "ann"))

    rig.keep(PREAMBLE)
    again = ask("again", behind(PROMPT), "A", "ann")
    rig.run(again)

    assert PrefixName("A", "prompt") not in rig.cache.pins
    assert again.num_cached_tokens == len(PREAMBLE.token_ids)


def test_a_removed_prompt_is_not_found_while_a_request_that_holds_it_runs() -> None:
    rig = TenantRig(page_size=4)
    rig.keep(PREAMBLE, PROMPT)
    rig.add(ask("runs", behind(PROMPT), "A", max_tokens=20))
    rig.step()

    rig.keeper.keep_exactly([PREAMBLE])
    probe = ask("probe", [*PROMPT.token_ids, 99], "A")
    rig.run(probe)

    assert probe.num_cached_tokens == len(PREAMBLE.token_ids)
    assert rig.outputs["runs"] == generate_alone(behind(PROMPT), 20, rig.next_token)
    assert rig.cache.allocator.num_used == 0


def test_a_prompt_removed_while_it_is_computed_ahead_is_not_pinned() -> None:
    rig = TenantRig(page_size=4, budget=8)
    rig.keep(PREAMBLE)
    rig.keeper.keep_exactly([PREAMBLE, PROMPT])
    rig.step()

    rig.keeper.keep_exactly([PREAMBLE])

    assert not rig.scheduler.has_work
    assert rig.cache.pins.names == [PrefixName("", "preamble")]


# ── The preamble ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_pinned", [True, False])
def test_a_removed_preamble_is_not_found_any_more(is_pinned: bool) -> None:
    preamble = KeptPrefix("", "preamble", PREAMBLE.token_ids, is_pinned)
    rig = TenantRig(page_size=4)
    rig.keep(preamble)
    rig.add(ask("runs", behind(preamble), "A", max_tokens=20))
    rig.step()

    rig.keeper.keep_exactly([])
    probes = [ask(tenant, [*preamble.token_ids, 99], tenant) for tenant in "AB"]
    rig.run(*probes)

    assert [each.num_cached_tokens for each in probes] == [0, 0]
    assert rig.outputs["runs"] == generate_alone(behind(preamble), 20, rig.next_token)
    assert rig.cached_pages_of("") == set()


def test_without_the_preamble_every_tenant_has_a_copy_of_its_own() -> None:
    rig = TenantRig(page_size=4)
    rig.keep(PREAMBLE)
    rig.keep()
    requests = [ask(tenant, [*PREAMBLE.token_ids, 99], tenant, max_tokens=8) for tenant in "AB"]
    rig.add(*requests)
    rig.step()

    first, second = held_pages(*requests)
    assert set(first.page_ids) & set(second.page_ids) == set()
