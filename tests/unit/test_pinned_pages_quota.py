"""A tenant's own bound on pinned pages takes the place of the common one."""

from dataclasses import replace

from unit.cache_helpers import Keeping, SchedulerRig, pin

from chatserve.cache.pins import PinLimits, PrefixName, Shortfall
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.scope_map import ScopeMap
from chatserve.engine.api import KeptPrefix, PrefixState

FIRST = KeptPrefix("a", "first", tuple(range(10, 18)))
"""Two pages of four tokens."""

SECOND = KeptPrefix("a", "second", tuple(range(20, 28)))
OTHERS = KeptPrefix("b", "first", tuple(range(30, 38)))


def states(rig: SchedulerRig) -> dict[tuple[str, str], PrefixState]:
    return {(name.tenant, name.name): report.state for name, report in rig.reports.items()}


def test_tenant_with_a_bound_may_pin_as_much_and_others_as_before() -> None:
    cache, scope_map = PrefixCache(32, 4, pin_limits=PinLimits(16, 1)), ScopeMap()
    cache.pins.bound_tenants({"a": 2})
    tokens = list(FIRST.token_ids)

    mine = pin(cache, PrefixName("a", "one"), tokens, scope_map.path_of(tokens, "a"))
    more = pin(cache, PrefixName("a", "two"), [7, *tokens], scope_map.path_of([7, *tokens], "a"))
    theirs = pin(cache, PrefixName("b", "one"), tokens, scope_map.path_of(tokens, "b"))

    assert mine is None
    assert more == Shortfall(3, 0, 2, is_tenants=True)
    assert theirs == Shortfall(2, 1, 1, is_tenants=True)


def test_kept_prefixes_are_held_to_the_bound_of_their_tenant() -> None:
    rig = SchedulerRig(num_pages=64, keeping=Keeping(PinLimits(16, 16)))

    rig.keep(replace(FIRST, tenant_pages=2), replace(SECOND, tenant_pages=2), OTHERS)
    rig.run()

    assert states(rig) == {
        ("a", "first"): PrefixState.PINNED,
        ("a", "second"): PrefixState.REFUSED,
        ("b", "first"): PrefixState.PINNED,
    }


def test_changed_bound_is_applied_to_what_is_kept_already() -> None:
    rig = SchedulerRig(num_pages=64, keeping=Keeping(PinLimits(16, 16)))
    num_pinned = []

    for tenant_pages in (2, 4, 0):
        rig.keep(*(replace(each, tenant_pages=tenant_pages) for each in (FIRST, SECOND)))
        rig.run()
        num_pinned.append(rig.cache.pins.num_pages)

    assert num_pinned == [2, 4, 0]
