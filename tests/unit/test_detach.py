"""Dropping: what is off the list is not found any more, and nobody else loses anything by it."""

import pytest
from unit.cache_helpers import hold, num_found, pin, serve

from chatserve.cache.pins import PinLimits, PrefixName
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.scope import NO_RETENTION, ScopePath
from chatserve.cache.scope_map import CacheScope, ScopeMap

PREAMBLE = list(range(1, 9))
"""Two whole pages of four."""

PROMPT = [*PREAMBLE, 20, 21]
"""The prompt of tenant `a`, which ends inside a page."""

ALL, NAME, OTHER_NAME = PrefixName("", "all"), PrefixName("a", "one"), PrefixName("a", "two")


class Tenants:
    """A cache of small pages with a registered preamble, and prompts of two tenants."""

    def __init__(self, cache_scope: CacheScope = CacheScope.TENANT):
        self.cache = PrefixCache(40, 4, pin_limits=PinLimits(20, 20))
        self.scope_map = ScopeMap(cache_scope)
        self.scope_map.register("", PREAMBLE, NO_RETENTION)

    def scopes(self, token_ids: list[int], tenant: str, user: str = "") -> ScopePath:
        return self.scope_map.path_of(token_ids, tenant, user)

    def register(self, name: PrefixName, token_ids: list[int], *, pinned: bool = True) -> None:
        self.scope_map.register(name.tenant, token_ids, NO_RETENTION)
        scopes = self.scopes(token_ids, name.tenant)
        if pinned:
            assert pin(self.cache, name, token_ids, scopes) is None
        else:
            serve(self.cache, token_ids, scopes)

    def serve(self, token_ids: list[int], tenant: str, user: str = "") -> None:
        serve(self.cache, token_ids, self.scopes(token_ids, tenant, user))

    def found(self, token_ids: list[int], tenant: str, user: str = "") -> int:
        return num_found(self.cache, token_ids, self.scopes(token_ids, tenant, user))

    def drop(self, name: PrefixName, token_ids: list[int]) -> None:
        scopes = self.scopes(token_ids, name.tenant)
        self.scope_map.unregister(name.tenant, token_ids, NO_RETENTION)
        self.cache.drop_prefix(name, token_ids, scopes)


@pytest.mark.parametrize("length", range(1, 13))
@pytest.mark.parametrize("pinned", [True, False])
def test_a_dropped_prefix_is_not_found_and_its_pages_are_free(length: int, pinned: bool) -> None:
    tenants, prompt = Tenants(), list(range(30, 30 + length))
    tenants.register(NAME, prompt, pinned=pinned)

    tenants.drop(NAME, prompt)

    assert tenants.found(prompt, "a") == 0
    assert tenants.cache.allocator.num_free == 40
    tenants.cache.check_invariants([])


def test_what_was_built_on_a_dropped_prefix_goes_with_it() -> None:
    tenants, prompt = Tenants(), list(range(30, 40))
    tenants.register(NAME, prompt)
    tenants.serve([*prompt, 1, 2, 3], "a")

    tenants.drop(NAME, prompt)

    assert tenants.found([*prompt, 1, 2, 3], "a") == 0
    assert tenants.cache.allocator.num_free == 40


def test_a_conversation_that_only_begins_alike_keeps_its_beginning() -> None:
    tenants, prompt = Tenants(), list(range(30, 42))
    tenants.register(NAME, prompt)
    tenants.serve([*prompt[:4], 50, 51, 52, 53], "a")

    tenants.drop(NAME, prompt)

    assert tenants.found(prompt, "a") == 4
    assert tenants.found([*prompt[:4], 50, 51, 52, 53], "a") == 8


def test_another_pin_keeps_what_it_shares_with_a_dropped_one() -> None:
    tenants, prompt = Tenants(), list(range(30, 42))
    tenants.register(OTHER_NAME, prompt[:8])
    tenants.register(NAME, prompt)

    tenants.drop(NAME, prompt)

    assert tenants.found(prompt, "a") == 8


def test_a_longer_pin_keeps_all_of_a_dropped_one() -> None:
    tenants, prompt = Tenants(), list(range(30, 42))
    tenants.register(NAME, prompt[:6])
    tenants.register(OTHER_NAME, prompt)

    tenants.drop(NAME, prompt[:6])

    assert tenants.found(prompt, "a") == 12
    assert tenants.cache.pins.num_pages == 3


def test_only_the_tail_goes_where_another_pin_holds_the_whole_pages() -> None:
    tenants, prompt = Tenants(), list(range(30, 40))
    tenants.register(OTHER_NAME, prompt[:8])
    tenants.register(NAME, prompt)
    tenants.serve([*prompt, 1, 2, 3], "a")
    tenants.serve([*prompt[:8], 50, 51], "a")

    tenants.drop(NAME, prompt)

    assert tenants.found([*prompt, 1, 2, 3], "a") == 8
    assert tenants.found([*prompt[:8], 50, 51], "a") == 10


@pytest.mark.parametrize("preamble_is_pinned", [True, False])
@pytest.mark.parametrize("prompt", [PROMPT, PREAMBLE, PREAMBLE[:6], [*PREAMBLE, 20, 21, 22, 23]])
def test_dropping_a_tenants_prompt_takes_nothing_from_another_tenant(
    preamble_is_pinned: bool, prompt: list[int]
) -> None:
    """It took the preamble, and other tenants' conversations with it: they could tell the time."""
    tenants, foreign = Tenants(), [*PREAMBLE, 20, 21, 22, 23, 24, 25]
    tenants.register(ALL, PREAMBLE, pinned=preamble_is_pinned)
    tenants.register(NAME, prompt)
    tenants.serve(foreign, "b")

    tenants.drop(NAME, prompt)

    assert tenants.found(foreign, "b") == len(foreign)
    assert tenants.found(PROMPT, "a") <= len(PREAMBLE)


def test_with_the_preamble_goes_what_all_tenants_have_built_on_it() -> None:
    tenants = Tenants()
    tenants.register(ALL, PREAMBLE)
    tenants.serve(PROMPT, "a")
    tenants.serve(PROMPT, "b")
    before = [tenants.scopes(PROMPT, tenant) for tenant in "ab"]

    tenants.drop(ALL, PREAMBLE)

    assert [num_found(tenants.cache, PROMPT, scopes) for scopes in before] == [0, 0]
    assert tenants.cache.allocator.num_free == 40


def test_pages_of_a_dropped_prefix_go_when_the_last_request_that_holds_them_ends() -> None:
    tenants, prompt = Tenants(), list(range(30, 40))
    tenants.register(NAME, prompt)
    longer = [*prompt, 1, 2, 3]
    holders = [hold(tenants.cache, longer, tenants.scopes(longer, "a")) for _ in range(2)]

    tenants.drop(NAME, prompt)

    assert tenants.found(longer, "a") == 0
    tenants.cache.check_invariants(holders)
    tenants.cache.retire(holders[0], longer, len(longer))
    tenants.cache.check_invariants(holders[1:])
    assert tenants.cache.allocator.num_free == 40 - 4
    tenants.cache.retire(holders[1], longer, len(longer))
    assert tenants.cache.allocator.num_free == 40
    tenants.cache.check_invariants([])


def test_nothing_enters_below_a_dropped_prefix_while_a_request_goes_on() -> None:
    tenants, prompt = Tenants(), list(range(30, 38))
    tenants.register(NAME, prompt)
    longer = [*prompt, *range(50, 62)]
    held = hold(tenants.cache, longer[:13], tenants.scopes(longer, "a"))
    tenants.drop(NAME, prompt)

    assert tenants.cache.try_grow(held, len(longer))
    tenants.cache.commit(held, longer, len(longer))

    assert tenants.found(longer, "a") == 0
    tenants.cache.check_invariants([held])
    tenants.cache.retire(held, longer, len(longer))
    assert tenants.cache.tree.num_nodes == 0


def test_the_same_prompt_can_be_cached_again_while_the_dropped_one_is_held() -> None:
    tenants, prompt = Tenants(), list(range(30, 40))
    tenants.register(NAME, prompt)
    held = hold(tenants.cache, [*prompt, 1], tenants.scopes(prompt, "a"))
    tenants.drop(NAME, prompt)

    tenants.register(NAME, prompt)

    assert tenants.found(prompt, "a") == len(prompt)
    tenants.cache.check_invariants([held])
    tenants.cache.release(held)
    tenants.cache.check_invariants([])


def test_dropping_what_was_evicted_already_changes_nothing() -> None:
    tenants, prompt = Tenants(), list(range(30, 40))
    tenants.register(NAME, prompt, pinned=False)
    tenants.serve(list(range(100, 260)), "b")

    tenants.drop(NAME, prompt)

    assert tenants.found(list(range(100, 260)), "b") == 160
    tenants.cache.check_invariants([])


@pytest.mark.parametrize("cache_scope", [CacheScope.TENANT, CacheScope.USER])
def test_a_revoked_tenant_leaves_nothing_and_the_others_lose_nothing(
    cache_scope: CacheScope,
) -> None:
    tenants = Tenants(cache_scope)
    tenants.register(ALL, PREAMBLE)
    tenants.register(NAME, PROMPT)
    tenants.serve([*PROMPT, 1, 2, 3], "a", "x")
    tenants.serve([*PROMPT, 1, 2, 3], "b", "x")

    tenants.cache.drop_tenant("a")

    assert tenants.found([*PROMPT, 1, 2, 3], "a", "x") == len(PREAMBLE)
    assert tenants.found([*PROMPT, 1, 2, 3], "b", "x") == len(PROMPT) + 3
    assert tenants.cache.pins.names == [ALL]
    tenants.cache.check_invariants([])
