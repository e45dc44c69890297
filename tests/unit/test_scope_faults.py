"""Ways in which one tenant's doings once showed in what another one got."""

import pytest
from unit.cache_helpers import generate_alone
from unit.scope_helpers import TenantRig, ask

from chatserve.cache.pins import PrefixName
from chatserve.cache.scope import Retention
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.engine.api import KeptPrefix

PREAMBLE = KeptPrefix("", "preamble", (1, 2, 3, 4), is_pinned=False)


# ── Scheduler ────────────────────────────────────────────────────────────────────────────────


def test_a_preempted_request_is_not_computed_in_the_same_step() -> None:
    """A victim that stood before the growing request in the step was computed on freed pages."""
    rig = TenantRig(page_size=8, num_pages=3, budget=12)
    requests = [
        ask("first", range(10, 14), "A", max_tokens=3),
        ask("ahead", [20], "A", max_tokens=14),
        ask("grows", range(30, 37), "B", max_tokens=14),
    ]

    rig.run(*requests)

    for request in requests:
        prompt = request.token_ids[: request.num_prompt_tokens]
        alone = generate_alone(prompt, request.sampling.max_tokens, rig.next_token)
        assert rig.outputs[request.request_id] == alone


@pytest.mark.parametrize(("older", "newer"), [(5, 7), (7, 5)])
def test_which_of_two_equally_long_matches_is_copied_evicts_nobody_else(
    older: int, newer: int
) -> None:
    """The page left of the new one in sorted order was the source, and could not be freed."""
    rig = TenantRig(num_pages=4)
    own = ask("own", [30, 31, 32, 33], "B")
    rig.run(ask("older", [1, 2, older, 9], "A"))
    rig.run(own)
    rig.run(ask("newer", [1, 2, newer, 9], "A"))
    rig.run(ask("fills", [3, 3, 3, 3], "A"))

    rig.run(ask("forks", [1, 2, 6, 6], "A"))
    again = ask("again", [30, 31, 32, 33], "B")
    rig.run(again)

    assert again.num_cached_tokens == 3


def test_nobody_waits_for_a_leader_whose_pages_will_not_be_found() -> None:
    """A prefill that had been cut off by the removal of its prompt was still waited for."""
    prompt = KeptPrefix("A", "prompt", tuple(range(20, 30)), is_pinned=False)
    rig = TenantRig(budget=12)
    rig.keeper.keep_exactly([prompt])
    rig.scheduler.abort([each.request_id for each in rig.scheduler.requests_of("A")])
    rig.add(ask("runs", range(20, 40), "A"))
    rig.step()
    rig.keeper.keep_exactly([])
    late = ask("late", range(20, 40), "A")
    rig.add(late)

    assert rig.step().admitted == [late]


# ── Removal ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("preamble", [(), (PREAMBLE,)], ids=["without", "with preamble"])
def test_removing_a_tenants_prompt_takes_no_page_of_another_tenant(
    preamble: tuple[KeptPrefix, ...],
) -> None:
    """What was cut off was chosen by its tokens, whosever it was."""
    start = [token_id for each in preamble for token_id in each.token_ids]
    rig = TenantRig()
    rig.keep(*preamble, KeptPrefix("A", "prompt", (*start, 5, 6, 7), is_pinned=False))
    rig.run(ask("chat", [*start, 5, 6, 7, 8, 9, 9, 9, 9], "B"))

    rig.keep(*preamble)
    again = ask("again", [*start, 5, 6, 7, 8, 9, 9, 9, 9], "B")
    rig.run(again)

    assert again.num_cached_tokens == len(start) + 7


def test_removing_a_tenants_prompt_leaves_the_preamble_that_it_was_built_on() -> None:
    """A preamble that led only to the removed prompt, and was not pinned, went with it."""
    rig = TenantRig()
    rig.keep(PREAMBLE, KeptPrefix("A", "prompt", (1, 2, 3, 4, 5, 6, 7, 8), is_pinned=False))

    rig.keep(PREAMBLE)
    other = ask("other", [1, 2, 3, 4, 9], "B")
    rig.run(other)

    assert other.num_cached_tokens == 4


def test_a_prompt_removed_while_it_was_computed_ahead_leaves_nothing_behind() -> None:
    """What the aborted warm-up had computed of a page was taken for somebody else's text."""
    rig = TenantRig(budget=6)
    rig.keeper.keep_exactly([KeptPrefix("A", "prompt", tuple(range(20, 40)))])
    rig.step()

    rig.keeper.keep_exactly([])

    assert rig.cached_pages_of("A") == set()


def test_a_prompt_can_be_removed_while_one_that_begins_with_it_is_computed_ahead() -> None:
    """The engine died: it pinned what had been cut off."""
    short = KeptPrefix("A", "short", tuple(range(8)))
    long = KeptPrefix("A", "long", tuple(range(48)))
    rig = TenantRig(budget=8, num_pages=128)
    rig.keep(short)
    rig.keeper.keep_exactly([short, long])
    rig.step()

    rig.keep(long)
    probe = ask("probe", [*range(48), 99], "A")
    rig.run(probe)

    assert PrefixName("A", "long") in rig.cache.pins
    assert probe.num_cached_tokens == 48


# ── Spans ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("length", range(1, 12))
def test_what_a_request_without_a_user_says_is_not_the_tenants(length: int) -> None:
    """Requests without a user had the scope of the tenant's registered prompts."""
    rig = TenantRig(cache_scope=CacheScope.USER)
    rig.keep(KeptPrefix("A", "prompt", tuple(range(20, 20 + length)), is_pinned=False))
    rig.run(ask("anonymous", range(20, 50), "A"))
    probe = ask("probe", range(20, 50), "A", "ann")

    rig.run(probe)

    assert probe.num_cached_tokens == length


@pytest.mark.parametrize(("kept", "spared"), [(5, 7), (7, 5)])
def test_where_two_prompts_share_the_beginning_the_greater_retention_holds(
    kept: int, spared: int
) -> None:
    """The one that stood first in sorted order won."""
    scope_map = ScopeMap()
    scope_map.register("A", [1, kept], Retention(priority=3))
    scope_map.register("A", [1, spared], Retention())

    assert scope_map.path_of([1, 6, 6], "A").spans[0].retention == Retention(priority=3)
