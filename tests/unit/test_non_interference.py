"""What a tenant gets from the scheduler does not depend on another tenant's tokens. Exact.

One schedule is run twice: who asks when and how much, behind how much of the preamble, who gives
up. In the second run all of tenant A's private tokens, prompts and answers, are other ones; which
of them are equal to each other stays as it was. Whatever the scheduler decides for tenant B must be
the same in every step, to the page.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from unit.interference_helpers import OTHER_WORDS, PREAMBLE, WORDS, Place, Run, Visit

from chatserve.cache.scope_map import CacheScope

Schedule = tuple[Place, list[Visit]]

MAX_VISITS = 10
WITHOUT_SHRINKING = settings(
    max_examples=300, derandomize=True, database=None, phases=[Phase.generate]
)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Draw an engine, most often far too small, and who visits it."""
    page_size = draw(st.sampled_from([1, 2, 4, 8]))
    place = Place(
        page_size=page_size,
        num_pages=draw(st.integers(16 // page_size, 16 // page_size + 10)),
        max_num_seqs=draw(st.integers(1, 5)),
        budget=draw(st.integers(5, 16)),
        ttl_steps=draw(st.sampled_from([float("inf"), 4.0, 12.0])),
    )
    visits: list[Visit] = []
    for _ in range(draw(st.integers(2, MAX_VISITS))):
        visits.append(draw_visit(draw, visits, place))
    return place, visits


def draw_visit(draw: st.DrawFn, earlier: list[Visit], place: Place) -> Visit:
    """Draw a visit; it may go on from any cut of an earlier one, whosever that was."""
    num_public = draw(st.integers(0, len(PREAMBLE)))
    said: tuple[int, ...] = ()
    goes_on = draw(st.booleans())
    if earlier and goes_on:
        base = draw(st.sampled_from(earlier))
        num_public, said = base.num_public, base.private + base.answer
        said = said[: draw(st.integers(0, len(said)))]
    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)
    private = (*said, *draw(words))
    step = (earlier[-1].step if earlier else 0) + draw(st.integers(0, 4))
    gives_up = draw(st.integers(0, 5)) == 0
    return Visit(
        tenant=draw(st.sampled_from("AB")),
        step=step,
        num_public=num_public,
        private=private[: place.num_slots - num_public - 1],
        answer=tuple(draw(words)),
        abort_step=step + draw(st.integers(0, 6)) if gives_up else None,
    )


renamings = st.permutations([*WORDS, *OTHER_WORDS]).map(
    lambda order: dict(zip(WORDS, order, strict=False))
)


def with_other_words(schedule: Schedule, words: Mapping[int, int]) -> Schedule:
    """Return the schedule with tenant A's private tokens replaced."""
    place, visits = schedule
    return place, [each.with_words(words) if each.tenant == "A" else each for each in visits]


@settings(max_examples=400)
@given(schedule=schedules(), words=renamings)
def test_another_tenants_tokens_change_nothing_that_is_decided_for_a_tenant(
    schedule: Schedule, words: dict[int, int]
) -> None:
    first, second = Run(*schedule), Run(*with_other_words(schedule, words))

    assert first.views_of("B") == second.views_of("B")


# ── Whether the test could fail ──────────────────────────────────────────────────────────────

SAID = (0, 1, 2, 2, 1, 0, 1, 1, 2, 0, 2)
LEAKS = {
    "a later one finds it": [
        Visit("A", 0, 3, SAID, (0, 0)),
        Visit("B", 9, 3, SAID, (0, 0)),
    ],
    "one that comes with it waits": [
        Visit("A", 0, 3, SAID, (0, 0)),
        Visit("B", 0, 3, SAID, (0, 0)),
    ],
    "one that comes meanwhile gets a copy": [
        Visit("A", 0, 0, (0, 1), (2,) * 8),
        Visit("B", 3, 0, (0, 1, 2, 1), (0, 0)),
    ],
    "what it computes as well is one page": [
        Visit("A", 0, 0, (0,), (1,) * 12),
        Visit("B", 0, 0, (0,), (1,) * 12),
    ],
}
AWAY = dict(zip(WORDS, OTHER_WORDS, strict=True))


@pytest.mark.parametrize("visits", LEAKS.values(), ids=LEAKS.keys())
def test_with_the_widest_scope_another_tenants_tokens_show(visits: list[Visit]) -> None:
    """The positive control."""
    place = Place(page_size=4, num_pages=16, cache_scope=CacheScope.ALL)
    scoped = replace(place, cache_scope=CacheScope.TENANT)
    others = [each.with_words(AWAY) if each.tenant == "A" else each for each in visits]

    assert Run(place, visits).views_of("B") != Run(place, others).views_of("B")
    assert Run(scoped, visits).views_of("B") == Run(scoped, others).views_of("B")


def has_copy(run: Run) -> bool:
    return any(entry.copies for view in run.views_of("B") for entry in view.entries)


def has_hit(run: Run) -> bool:
    return any(num_cached for view in run.views_of("B") for _, num_cached in view.admitted)


def is_preempted(run: Run) -> bool:
    return any(view.preempted for view in run.views_of("B"))


def has_chunks(run: Run) -> bool:
    return any(not entry.samples for view in run.views_of("B") for entry in view.entries)


def evicts(run: Run) -> bool:
    return run.num_evictions > 0


@pytest.mark.parametrize("happens", [has_copy, has_hit, is_preempted, has_chunks, evicts])
def test_the_schedules_have_in_them_what_could_give_something_away(
    happens: Callable[[Run], bool],
) -> None:
    found = find(schedules(), lambda schedule: happens(Run(*schedule)), settings=WITHOUT_SHRINKING)

    assert found
