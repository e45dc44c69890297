"""The order of eviction on small traces of tenants, against least recent use and Belady's optimum.

The benchmark asks the same of larger ones; see `benchmarks/eviction`.
"""

from itertools import combinations
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.eviction.belady import PageUses, most_cached_tokens, most_found, page_uses
from benchmarks.eviction.simulate import PAGE_SIZE, least_recently_used, simulate
from benchmarks.eviction.traces import Scan, TracedRequest, Workload, make_trace
from chatserve.cache.eviction_queue import EvictionQueue

MAX_LOSS = 0.005


def small_trace(zipf: float, scan: Scan, seed: int = 1) -> list[TracedRequest]:
    return make_trace(Workload(zipf, scan, seed, num_tenants=12, num_sessions=60))


def num_prompt_tokens(trace: list[TracedRequest]) -> int:
    return sum(len(request.prompt) for request in trace)


@pytest.mark.parametrize("scan", Scan)
@pytest.mark.parametrize("zipf", [0.6, 0.9, 1.2])
def test_ours_is_between_least_recent_use_and_the_bound(zipf: float, scan: Scan) -> None:
    trace = small_trace(zipf, scan)
    uses, working_set = page_uses(trace, PAGE_SIZE)
    num_pages = working_set // 4

    least_recent = simulate(trace, num_pages, least_recently_used()).hit_rate
    ours = simulate(trace, num_pages, EvictionQueue()).hit_rate
    bound = most_cached_tokens(uses, num_pages, PAGE_SIZE) / num_prompt_tokens(trace)

    assert least_recent - MAX_LOSS <= ours <= bound
    assert least_recent <= bound


def test_in_a_pool_of_a_few_conversations_more_is_found_on_average() -> None:
    """One trace so small is mostly chance."""
    traces = [small_trace(0.9, Scan.NONE, seed) for seed in range(5)]

    gains = [
        simulate(trace, 450, EvictionQueue()).hit_rate
        - simulate(trace, 450, least_recently_used()).hit_rate
        for trace in traces
    ]

    assert mean(gains) > MAX_LOSS


def test_a_pool_for_everything_finds_what_the_bound_allows_in_whole_pages() -> None:
    trace = small_trace(0.9, Scan.PROMPT)
    uses, working_set = page_uses(trace, PAGE_SIZE)

    found = simulate(trace, 2 * working_set, EvictionQueue()).hit_rate * num_prompt_tokens(trace)

    whole_pages = PAGE_SIZE * most_found(uses, 2 * working_set)
    assert whole_pages <= found <= whole_pages + (PAGE_SIZE - 1) * len(trace)


def test_a_trace_is_made_of_its_workload_alone() -> None:
    assert small_trace(0.9, Scan.BARE) == small_trace(0.9, Scan.BARE)
    assert small_trace(0.9, Scan.BARE) != small_trace(0.9, Scan.BARE, seed=2)


def test_other_tokens_in_the_same_places_are_evicted_alike() -> None:
    trace = small_trace(0.9, Scan.PROMPT)
    others = [
        TracedRequest([-t for t in request.prompt], [-t for t in request.answer])
        for request in trace
    ]

    scores = [simulate(each, 500, EvictionQueue()) for each in (trace, others)]

    assert scores[0] == scores[1]


@pytest.mark.parametrize("scan", Scan)
def test_a_trace_has_the_shape_it_says(scan: Scan) -> None:
    trace = small_trace(0.9, scan)

    answer_ends = {request.answer[-1] for request in trace}
    later_turns = [request for request in trace if not answer_ends.isdisjoint(request.prompt)]

    assert len(later_turns) > len(trace) / 3
    assert all(300 <= len(request.prompt) < 5_000 for request in trace)


def most_found_by_trying(uses: list[PageUses], num_pages: int) -> int:
    """Try every set of pages that could be kept after every request."""
    best: dict[frozenset[int], int] = {frozenset(): 0}
    for use in uses:
        after: dict[frozenset[int], int] = {}
        for resident, found in best.items():
            found += len(resident & set(use.found))
            others = resident - set(use.left)
            num_kept = min(len(others), num_pages - use.num_held)
            for kept in combinations(sorted(others), num_kept):
                state = frozenset([*use.left, *kept])
                after[state] = max(after.get(state, 0), found)
        best = after
    return max(best.values())


PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=5), min_size=1, max_size=7)


@given(PROMPTS, st.sampled_from([1, 2]), st.integers(0, 3))
def test_no_choice_of_pages_beats_the_optimum(
    prompts: list[list[int]], page_size: int, num_spare: int
) -> None:
    trace = [TracedRequest(prompt, [100 + index]) for index, prompt in enumerate(prompts)]
    uses, _ = page_uses(trace, page_size)
    num_pages = max(use.num_held for use in uses) + num_spare

    assert most_found(uses, num_pages) == most_found_by_trying(uses, num_pages)
