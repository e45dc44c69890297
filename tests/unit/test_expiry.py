"""Time to live: what nobody has used for so long is not found any more."""

import pytest
from unit.cache_helpers import hold, num_found, pin, serve

from chatserve.cache.pins import PinLimits, PrefixName
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.scope import PUBLIC, Retention, ScopePath, Span
from chatserve.cache.scope_map import ScopeMap

TOKENS = list(range(10, 20))
"""Two whole pages of four, and a half."""


def kept_for(ttl_s: float, priority: int = 0) -> ScopePath:
    return ScopePath((Span(PUBLIC, retention=Retention(priority, ttl_s)),))


def make_cache() -> PrefixCache:
    return PrefixCache(16, 4, pin_limits=PinLimits(8, 8))


def test_an_unused_prefix_expires_to_its_last_page() -> None:
    cache = make_cache()
    serve(cache, TOKENS, kept_for(5.0))

    cache.expire(4.9)
    assert num_found(cache, TOKENS) == len(TOKENS)
    cache.expire(5.0)

    assert num_found(cache, TOKENS) == 0
    assert cache.allocator.num_free == 16
    cache.check_invariants([])


def test_use_starts_the_time_anew() -> None:
    cache = make_cache()
    serve(cache, TOKENS[:8], kept_for(5.0))
    cache.expire(4.0)

    serve(cache, TOKENS[:8], kept_for(5.0))
    cache.expire(8.9)

    assert num_found(cache, TOKENS[:8]) == 8
    cache.expire(9.0)
    assert num_found(cache, TOKENS[:8]) == 0


def test_using_what_builds_on_it_is_using_it() -> None:
    cache = make_cache()
    serve(cache, TOKENS[:4], kept_for(5.0))
    cache.expire(4.0)

    serve(cache, TOKENS[:8], kept_for(5.0))
    cache.expire(7.0)

    assert num_found(cache, TOKENS[:8]) == 8


def test_looking_is_not_using() -> None:
    cache = make_cache()
    serve(cache, TOKENS[:8], kept_for(5.0))
    cache.expire(4.0)

    assert num_found(cache, TOKENS[:8]) == 8
    cache.expire(5.0)

    assert num_found(cache, TOKENS[:8]) == 0


def test_what_a_request_holds_does_not_expire_and_lives_on_from_its_end() -> None:
    cache = make_cache()
    held = hold(cache, TOKENS, kept_for(5.0))
    cache.expire(100.0)
    assert num_found(cache, TOKENS[:8]) == 8

    cache.retire(held, TOKENS, len(TOKENS))
    cache.expire(104.9)

    assert num_found(cache, TOKENS) == len(TOKENS)
    cache.expire(105.0)
    assert num_found(cache, TOKENS) == 0


@pytest.mark.parametrize("is_held", [True, False])
def test_no_time_to_live_is_no_time_at_all(is_held: bool) -> None:
    """A node in use whose time to live was 0 was expired and put back for ever."""
    cache = make_cache()
    held = hold(cache, TOKENS, kept_for(0.0))
    if not is_held:
        cache.retire(held, TOKENS, len(TOKENS))

    cache.expire(1.0)

    assert num_found(cache, TOKENS) == (8 if is_held else 0)


def test_a_pinned_prefix_does_not_expire() -> None:
    cache, name = make_cache(), PrefixName("", "all")
    pin(cache, name, TOKENS, kept_for(5.0))

    cache.expire(1000.0)

    assert num_found(cache, TOKENS) == len(TOKENS)
    cache.unpin(name)
    cache.expire(1005.0)
    assert num_found(cache, TOKENS) == 0


def test_a_last_page_that_prompts_go_on_from_is_in_use() -> None:
    """What was copied counted as unused, and a prefix in constant use lost its last tokens."""
    cache, scope_map = make_cache(), ScopeMap()
    scope_map.register("", TOKENS, Retention(ttl_s=5.0))
    serve(cache, TOKENS, scope_map.path_of(TOKENS, ""))

    for now_s in (3.0, 6.0, 9.0):
        cache.expire(now_s)
        prompt = [*TOKENS, 50]
        serve(cache, prompt, scope_map.path_of(prompt, "a"))
    cache.expire(10.0)

    assert num_found(cache, TOKENS, scope_map.path_of(TOKENS, "b")) == len(TOKENS)


def test_what_stays_longer_keeps_alive_what_it_is_built_on() -> None:
    """A page that was found instead of computed kept the time to live of whoever came first."""
    cache = make_cache()
    serve(cache, TOKENS[:4], kept_for(5.0))
    serve(cache, TOKENS[:8], kept_for(50.0))

    cache.expire(20.0)

    assert num_found(cache, TOKENS[:8]) == 8


def test_with_a_prefix_goes_what_is_built_on_it() -> None:
    cache = make_cache()
    scopes = ScopePath((Span(PUBLIC, 4, Retention(0, 5.0)), Span(PUBLIC)))
    serve(cache, TOKENS, scopes)

    cache.expire(5.0)

    assert num_found(cache, TOKENS, scopes) == 0
    assert cache.allocator.num_free == 16
    cache.check_invariants([])


def test_a_split_keeps_the_time_to_live_of_both_halves() -> None:
    cache = make_cache()
    serve(cache, TOKENS[:8], kept_for(5.0))
    cache.expire(4.0)
    serve(cache, [*TOKENS[:4], 50, 51, 52, 53], kept_for(5.0))

    cache.expire(5.0)

    assert num_found(cache, TOKENS[:8]) == 4
    cache.expire(9.0)
    assert cache.allocator.num_free == 16
    cache.check_invariants([])


def test_eviction_takes_what_has_not_expired_yet() -> None:
    cache = make_cache()
    serve(cache, TOKENS, kept_for(5.0))

    serve(cache, list(range(100, 164)))
    cache.expire(5.0)

    assert num_found(cache, TOKENS) == 0
    cache.check_invariants([])
