"""Kept prefixes: computed ahead, pinned, saved, restored and forgotten, on real files."""

from pathlib import Path

import pytest
from unit.cache_helpers import Keeping, SchedulerRig, generate_alone, make_request

from chatserve.cache.pins import PinLimits, PrefixName
from chatserve.cache.scope import Retention
from chatserve.cache.scope_map import ScopeMap
from chatserve.engine.api import KeptPrefix, PrefixState

PREAMBLE = KeptPrefix("", "preamble", tuple(range(10, 20)))
"""Ten tokens: two pages of four, and a half."""

PROMPT = KeptPrefix("a", "support", (*range(10, 20), *range(30, 37)))
OTHER_PROMPT = KeptPrefix("a", "sales", (*range(10, 20), *range(40, 47)))

ENOUGH = PinLimits(16, 16)


def make_rig(
    folder: Path | None = None,
    limits: PinLimits = ENOUGH,
    *,
    num_pages: int = 64,
    prefix_cache: bool = True,
    scope_map: ScopeMap | None = None,
) -> SchedulerRig:
    return SchedulerRig(
        num_pages=num_pages,
        max_num_batched_tokens=6,
        prefix_cache=prefix_cache,
        keeping=Keeping(limits, scope_map or ScopeMap(), folder),
    )


def name_of(prefix: KeptPrefix) -> PrefixName:
    return PrefixName(prefix.tenant, prefix.name)


def states(rig: SchedulerRig) -> dict[str, PrefixState]:
    return {name.name: report.state for name, report in rig.reports.items()}


def num_cached(rig: SchedulerRig, prefix: KeptPrefix, tenant: str = "a") -> int | None:
    """Serve a prompt that begins with a prefix; return how much of it was cached."""
    prompt = [*prefix.token_ids, 90, 91]
    request = make_request(f"probe {rig.now_s}", prompt, 4, tenant=tenant)
    rig.now_s += 1.0
    rig.add(request)
    rig.run()
    assert rig.outputs[request.request_id] == generate_alone(prompt, 4, rig.next_token)
    return request.num_cached_tokens


# ── Ahead of anybody's asking ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("length", range(1, 18))
def test_a_prefix_of_any_length_is_computed_ahead_and_pinned(length: int) -> None:
    rig = make_rig()
    prefix = KeptPrefix("a", "support", PROMPT.token_ids[:length])

    (report,) = rig.keep(prefix)
    rig.run()

    assert report.state is PrefixState.WARMING
    assert states(rig) == {"support": PrefixState.PINNED}
    assert rig.cache.allocator.num_used == 0
    assert num_cached(rig, prefix) == length


def test_what_stays_on_the_list_is_left_alone() -> None:
    rig = make_rig()
    rig.keep(PREAMBLE)
    rig.run()

    reports = rig.keep(PREAMBLE, PROMPT)

    assert [report.prefix for report in reports] == [PROMPT]
    assert name_of(PREAMBLE) in rig.cache.pins


def test_prompts_on_one_preamble_share_its_pages() -> None:
    rig = make_rig()

    rig.keep(PROMPT, OTHER_PROMPT, PREAMBLE)
    rig.run()

    assert set(states(rig).values()) == {PrefixState.PINNED}
    assert rig.cache.pins.num_pages_of("") == 3
    assert rig.cache.pins.num_pages_of("a") == 6
    pages = [rig.cache.pins.pages_of(name_of(each))[:2] for each in (PROMPT, OTHER_PROMPT)]
    assert pages[0] == pages[1]


def test_a_prefix_that_is_not_pinned_is_computed_ahead_and_evicted_like_anything_else() -> None:
    rig = make_rig(num_pages=24)
    prefix = KeptPrefix("a", "support", PROMPT.token_ids, is_pinned=False)

    rig.keep(prefix)
    rig.run()

    assert states(rig) == {"support": PrefixState.CACHED}
    assert rig.cache.pins.num_pages == 0
    assert num_cached(rig, prefix) == len(prefix.token_ids)


def test_a_prefix_that_is_cached_for_less_long_already_is_cached_as_long_as_it_was_registered() -> (
    None
):
    """Registering what a conversation had left in the cache did not keep it any longer."""
    rig = make_rig(scope_map=ScopeMap(retention=Retention(ttl_s=10.0)))
    prefix = KeptPrefix("a", "support", tuple(range(30, 38)), is_pinned=False)
    num_cached(rig, prefix)

    rig.keep(prefix)
    rig.run()
    rig.now_s += 100.0

    assert num_cached(rig, prefix) == len(prefix.token_ids)


def test_of_two_prefixes_that_are_not_pinned_the_more_important_one_stays_longer() -> None:
    rig = make_rig(limits=PinLimits(0, 0), num_pages=24)
    more = KeptPrefix("a", "more", tuple(range(30, 46)), is_pinned=False, priority=2)
    less = KeptPrefix("b", "less", tuple(range(50, 66)), is_pinned=False, priority=1)
    rig.keep(more, less)
    rig.run()
    num_cached(rig, less, "b")

    for number in range(5):
        rig.add(make_request(f"r{number}", list(range(100 * number, 100 * number + 66)), 4))
        rig.run()

    assert num_cached(rig, more, "a") == len(more.token_ids)
    assert (num_cached(rig, less, "b") or 0) < len(less.token_ids)


# ── Refused ──────────────────────────────────────────────────────────────────────────────────


def test_a_prefix_over_the_tenants_quota_is_refused_with_the_sizes() -> None:
    rig = make_rig(limits=PinLimits(16, 4))

    rig.keep(PROMPT)

    report = rig.reports[name_of(PROMPT)]
    assert report.state is PrefixState.REFUSED
    assert report.reason == ("it needs 5 more pages, with 4 left of 4 that a tenant may pin")
    assert not rig.scheduler.has_work


def test_a_prefix_over_the_total_is_refused_with_the_sizes() -> None:
    rig = make_rig(limits=PinLimits(4, 16))

    rig.keep(PREAMBLE, PROMPT)
    rig.run()

    assert states(rig) == {"preamble": PrefixState.PINNED, "support": PrefixState.REFUSED}
    assert "4 left of 4 that may be pinned in this pool" in str(rig.reports[name_of(PROMPT)].reason)


def test_of_two_that_do_not_fit_together_the_first_computed_is_pinned() -> None:
    rig = make_rig(limits=PinLimits(16, 5))

    rig.keep(PROMPT, OTHER_PROMPT)
    rig.run()

    assert sorted(states(rig).values()) == [PrefixState.PINNED, PrefixState.REFUSED]


def test_prompts_that_begin_with_a_refused_prefix_share_it_all_the_same() -> None:
    rig = make_rig(limits=PinLimits(0, 0))
    rig.keep(PROMPT)

    assert num_cached(rig, PROMPT) == 0
    assert num_cached(rig, PROMPT) == len(PROMPT.token_ids) + 1


def test_a_prefix_longer_than_the_context_is_refused_and_does_no_harm() -> None:
    rig = make_rig(limits=PinLimits(40, 40))
    too_long = KeptPrefix("a", "book", tuple(range(10, 130)))

    rig.keep(too_long)

    report = rig.reports[name_of(too_long)]
    assert report.state is PrefixState.REFUSED
    assert "120 tokens" in str(report.reason)
    assert num_cached(rig, PROMPT) == 0


def test_without_a_cache_every_prefix_is_refused() -> None:
    rig = make_rig(prefix_cache=False)

    rig.keep(PREAMBLE, PROMPT)

    assert set(states(rig).values()) == {PrefixState.REFUSED}
    assert not rig.scheduler.has_work
    assert num_cached(rig, PROMPT) == 0


# ── Off the list ─────────────────────────────────────────────────────────────────────────────


def test_off_the_list_a_prefix_is_unpinned_forgotten_and_its_file_removed(tmp_path: Path) -> None:
    rig = make_rig(tmp_path)
    rig.keep(PROMPT)
    rig.run()

    rig.keep()

    assert num_cached(rig, PROMPT) == 0
    assert rig.cache.pins.names == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("num_steps", range(4))
def test_off_the_list_while_it_is_computed_it_leaves_nothing_behind(num_steps: int) -> None:
    rig = make_rig()
    rig.keep(PROMPT)
    for _ in range(num_steps):
        rig.step()

    rig.keep()

    assert not rig.scheduler.has_work
    assert rig.cache.allocator.num_free == 64


@pytest.mark.parametrize(
    "below", [PREAMBLE, KeptPrefix("a", "begin", PROMPT.token_ids[:12])], ids=["preamble", "prompt"]
)
@pytest.mark.parametrize("num_steps", range(1, 4))
def test_a_prefix_is_pinned_though_what_it_is_built_on_goes_while_it_is_computed(
    below: KeptPrefix, num_steps: int
) -> None:
    """The engine died of it: the pages that it was computed on could not be found any more."""
    rig = make_rig()
    rig.keep(below)
    rig.run()
    rig.keep(below, PROMPT)
    for _ in range(num_steps):
        rig.step()

    rig.keep(PROMPT)
    rig.run()

    assert states(rig) == {"support": PrefixState.PINNED}
    assert num_cached(rig, PROMPT) == len(PROMPT.token_ids)


@pytest.mark.parametrize("preamble_first", [True, False])
def test_a_pinned_prompt_is_found_after_the_preamble_below_it_came_or_went(
    preamble_first: bool,
) -> None:
    """It stayed pinned in scopes that no prompt had any more, so that nobody found it."""
    rig = make_rig()
    before, after = [PREAMBLE, PROMPT], [PROMPT]
    rig.keep(*(before if preamble_first else after))
    rig.run()

    rig.keep(*(after if preamble_first else before))
    rig.run()

    assert num_cached(rig, PROMPT) == len(PROMPT.token_ids)


def test_a_revoked_tenant_keeps_no_prefix_and_no_file(tmp_path: Path) -> None:
    rig, foreign = make_rig(tmp_path), KeptPrefix("b", "support", PROMPT.token_ids)
    rig.keep(PREAMBLE, PROMPT, OTHER_PROMPT, foreign)
    rig.run()
    assert len(list(tmp_path.iterdir())) == 4

    rig.revoke("a")

    assert set(rig.cache.pins.names) == {name_of(PREAMBLE), name_of(foreign)}
    assert len(list(tmp_path.iterdir())) == 2
    assert num_cached(rig, PROMPT, "a") == len(PREAMBLE.token_ids)
    assert num_cached(rig, PROMPT, "b") == len(PROMPT.token_ids)


# ── After a restart ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("length", [1, 4, 7, 8, 17])
def test_after_a_restart_a_prefix_is_pinned_without_computing_a_token(
    length: int, tmp_path: Path
) -> None:
    prefix = KeptPrefix("a", "support", PROMPT.token_ids[:length])
    before = make_rig(tmp_path)
    before.keep(prefix)
    before.run()
    after = make_rig(tmp_path)

    (report,) = after.keep(prefix)

    assert (report.state, report.is_restored) == (PrefixState.PINNED, True)
    assert not after.scheduler.has_work
    assert num_cached(after, prefix) == length


def test_restored_prompts_share_the_restored_preamble(tmp_path: Path) -> None:
    before, after = make_rig(tmp_path), make_rig(tmp_path)
    before.keep(PREAMBLE, PROMPT, OTHER_PROMPT)
    before.run()

    after.keep(OTHER_PROMPT, PREAMBLE, PROMPT)

    assert all(report.is_restored for report in after.reports.values())
    assert after.cache.pins.num_pages == before.cache.pins.num_pages == 9
    assert num_cached(after, PROMPT) == len(PROMPT.token_ids)
    assert num_cached(after, OTHER_PROMPT) == len(OTHER_PROMPT.token_ids)
    assert num_cached(after, PREAMBLE, "b") == len(PREAMBLE.token_ids)


def test_with_other_tokens_under_its_name_a_prefix_is_computed_and_the_old_file_is_gone(
    tmp_path: Path,
) -> None:
    before, after = make_rig(tmp_path), make_rig(tmp_path)
    before.keep(PROMPT)
    before.run()
    old = [path.read_bytes() for path in tmp_path.iterdir()]
    changed = KeptPrefix("a", "support", OTHER_PROMPT.token_ids)

    (report,) = after.keep(changed)
    after.run()

    assert report.state is PrefixState.WARMING
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() not in old
    assert num_cached(after, changed) == len(changed.token_ids)


def test_what_is_not_on_the_list_after_a_restart_loses_its_file(tmp_path: Path) -> None:
    before, after = make_rig(tmp_path), make_rig(tmp_path)
    before.keep(PREAMBLE, PROMPT)
    before.run()

    after.keep(PREAMBLE)

    assert len(list(tmp_path.iterdir())) == 1
    assert name_of(PREAMBLE) in after.cache.pins


def test_a_damaged_file_is_ignored_and_replaced(tmp_path: Path) -> None:
    before, after = make_rig(tmp_path), make_rig(tmp_path)
    before.keep(PROMPT)
    before.run()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + bytes(8) + whole[-32:])

    (report,) = after.keep(PROMPT)
    after.run()

    assert (report.state, report.is_restored) == (PrefixState.WARMING, False)
    assert path.read_bytes() == whole
    assert num_cached(after, PROMPT) == len(PROMPT.token_ids)


def test_where_there_are_no_pages_to_restore_into_a_prefix_waits_and_is_computed(
    tmp_path: Path,
) -> None:
    limits = PinLimits(6, 6)
    before, after = (
        make_rig(tmp_path, limits, num_pages=20),
        make_rig(tmp_path, limits, num_pages=20),
    )
    before.keep(PROMPT)
    before.run()
    after.add(*(make_request(f"r{i}", [50 + i] * 20, 30, ignore_eos=True) for i in range(3)))
    while len(after.scheduler.running) < 3:
        after.step()

    (report,) = after.keep(PROMPT)
    after.run()

    assert (report.state, report.is_restored) == (PrefixState.WARMING, False)
    assert states(after) == {"support": PrefixState.PINNED}


def test_a_prefix_that_is_not_pinned_is_not_saved(tmp_path: Path) -> None:
    rig = make_rig(tmp_path)

    rig.keep(KeptPrefix("a", "support", PROMPT.token_ids, is_pinned=False))
    rig.run()

    assert list(tmp_path.iterdir()) == []
