"""Pinned prefixes: found to their last token whatever happens, within their limits."""

import pytest
from unit.cache_helpers import hold, num_found, pin, serve

from chatserve.cache.pins import PinLimits, PrefixName, Shortfall
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.scope import NO_RETENTION
from chatserve.cache.scope_map import ScopeMap

ONE, TWO = PrefixName("a", "one"), PrefixName("a", "two")
OTHER = PrefixName("b", "one")
PREAMBLE = PrefixName("", "preamble")
TOKENS = list(range(10, 20))
"""Two whole pages of four, and a half."""


def make_cache(total: int = 16, tenant: int = 16, *, num_pages: int = 32) -> PrefixCache:
    return PrefixCache(num_pages, 4, pin_limits=PinLimits(total, tenant))


def scope_map_with_preamble(token_ids: list[int]) -> ScopeMap:
    scope_map = ScopeMap()
    scope_map.register("", token_ids, NO_RETENTION)
    return scope_map


@pytest.mark.parametrize("length", range(1, 10))
def test_a_pinned_prefix_of_any_length_survives_any_other_traffic(length: int) -> None:
    cache = make_cache(num_pages=8)
    prefix = TOKENS[:length]
    assert pin(cache, ONE, prefix) is None

    for start in range(100, 200):
        serve(cache, list(range(start, start + 20)))

    assert num_found(cache, prefix) == length
    assert cache.pins.num_pages == cache.pages_for(length)
    cache.check_invariants([])


def test_a_pinned_tail_survives_a_page_that_begins_with_it() -> None:
    """A tail gives way to a page that begins with it; a pinned one must not, nor be copied over."""
    cache = make_cache()
    pin(cache, ONE, TOKENS)

    serve(cache, [*TOKENS, 20, 21, 22])

    assert cache.pins.pages_of(ONE)[2] != cache.match_prefix([*TOKENS, 20, 21, 22, 23]).pages[2]
    assert num_found(cache, TOKENS) == len(TOKENS)
    assert num_found(cache, [*TOKENS, 20, 21, 22]) == 13


def test_an_unpinned_prefix_stays_until_its_pages_are_needed() -> None:
    cache = make_cache(num_pages=8)
    pin(cache, ONE, TOKENS)

    cache.unpin(ONE)
    cache.unpin(ONE)

    assert num_found(cache, TOKENS) == len(TOKENS)
    serve(cache, list(range(100, 132)))
    assert num_found(cache, TOKENS) == 0


def test_all_pins_together_stay_within_the_total() -> None:
    cache = make_cache(total=5)
    assert pin(cache, ONE, TOKENS) is None

    assert pin(cache, OTHER, list(range(30, 42))) == Shortfall(3, 2, 5, is_tenants=False)

    assert OTHER not in cache.pins
    assert num_found(cache, list(range(30, 42))) == 12
    cache.check_invariants([])


def test_the_pins_of_a_tenant_stay_within_its_quota() -> None:
    cache, scope_map = make_cache(total=16, tenant=4), ScopeMap()
    assert pin(cache, ONE, TOKENS, scope_map.path_of(TOKENS, "a")) is None
    more = list(range(30, 38))

    shortfall = pin(cache, TWO, more, scope_map.path_of(more, "a"))

    assert shortfall == Shortfall(2, 1, 4, is_tenants=True)
    assert pin(cache, OTHER, more, scope_map.path_of(more, "b")) is None
    assert (cache.pins.num_pages_of("a"), cache.pins.num_pages_of("b")) == (3, 2)


def test_the_operator_has_no_quota_but_the_total() -> None:
    cache, preamble = make_cache(total=16, tenant=1), list(range(40))

    assert pin(cache, PREAMBLE, preamble) is None

    assert cache.pins.num_pages == 10


def test_pages_that_two_pins_share_count_once() -> None:
    cache = make_cache(total=4)
    assert pin(cache, ONE, TOKENS[:8]) is None

    assert pin(cache, TWO, [*TOKENS[:8], *range(50, 58)]) is None

    assert cache.pins.num_pages == 4
    assert cache.pins.pages_of(TWO)[:2] == cache.pins.pages_of(ONE)


def test_the_same_prefix_under_two_names_takes_its_pages_once() -> None:
    """The partly filled last page was counted as if it had to be taken again."""
    cache = make_cache(total=3)
    assert pin(cache, ONE, TOKENS) is None

    assert pin(cache, TWO, TOKENS) is None

    assert cache.pins.num_pages == 3
    assert cache.pins.pages_of(TWO) == cache.pins.pages_of(ONE)


def test_pages_of_the_preamble_count_for_the_operator_and_not_for_the_tenant() -> None:
    preamble = list(range(8))
    cache, scope_map = make_cache(total=8, tenant=2), scope_map_with_preamble(preamble)
    pin(cache, PREAMBLE, preamble, scope_map.path_of(preamble, ""))
    prompt = [*preamble, *TOKENS[:8]]

    shortfall = pin(cache, ONE, prompt, scope_map.path_of(prompt, "a"))

    assert shortfall is None
    assert (cache.pins.num_pages_of(""), cache.pins.num_pages_of("a")) == (2, 2)


def test_a_page_in_which_the_preamble_ends_is_the_tenants() -> None:
    preamble = list(range(6))
    cache, scope_map = make_cache(), scope_map_with_preamble(preamble)
    prompt = [*preamble, *TOKENS[:6]]

    pin(cache, ONE, prompt, scope_map.path_of(prompt, "a"))

    assert (cache.pins.num_pages_of(""), cache.pins.num_pages_of("a")) == (1, 2)


def test_what_one_of_two_pins_shares_stays_when_the_other_goes() -> None:
    cache = make_cache(num_pages=8)
    longer = [*TOKENS[:8], *range(50, 54)]
    pin(cache, ONE, TOKENS[:8])
    pin(cache, TWO, longer)

    cache.unpin(TWO)
    serve(cache, list(range(100, 124)))

    assert num_found(cache, longer) == 8
    assert cache.pins.num_pages == 2


def test_a_shortfall_is_known_before_anything_is_computed() -> None:
    cache = make_cache(total=2)

    shortfall = cache.pin_shortfall(TOKENS, ScopeMap().path_of(TOKENS, "a"), "a")

    assert shortfall == Shortfall(3, 2, 2, is_tenants=False)
    assert cache.tree.num_nodes == 0


def test_a_running_request_keeps_its_pages_when_the_pin_on_them_goes() -> None:
    cache = make_cache(num_pages=8)
    pin(cache, ONE, TOKENS)
    held = hold(cache, [*TOKENS, 20, 21])

    cache.unpin(ONE)
    serve(cache, list(range(100, 112)))

    cache.check_invariants([held])
    assert num_found(cache, TOKENS[:8]) == 8
