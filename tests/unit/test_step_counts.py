"""How the memory benchmark counts: an engine on integers, and the reservations it is held against.

Page size 4, prompts of a few tokens; every expected figure is counted by hand.
"""

import pytest
from unit.cache_helpers import hash_model
from unit.tokenizer_helpers import byte_level_definition, make_tokenizer

from benchmarks.reservation import (
    PRE_ALLOCATED_TOKENS,
    ContiguousPool,
    exact_reservation,
    pre_allocation,
    simulate,
)
from benchmarks.step_samples import LoadFigures, StepSample, fills
from benchmarks.stepped_engine import SteppedEngine, Work
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.engine.fake import FakeRunner
from chatserve.engine.scheduler import Scheduler, SchedulerConfig

PAGE_SIZE = 4
TOKENIZER = make_tokenizer(byte_level_definition())


def make_engine(num_pages: int, *, prefix_cache: bool = True) -> SteppedEngine:
    config = SchedulerConfig(8, 64, num_pages * PAGE_SIZE, frozenset())
    cache = PrefixCache(num_pages, PAGE_SIZE, enabled=prefix_cache)
    runner = FakeRunner(num_pages, PAGE_SIZE, hash_model())
    return SteppedEngine(Scheduler(config, cache), runner, TOKENIZER)


def make_work(name: str, num_prompt_tokens: int, max_tokens: int) -> Work:
    first = 10 * ord(name)
    return Work(name, range(first, first + num_prompt_tokens), max_tokens)


def samples_of(*rows: tuple[int, int, int, int, bool]) -> list[StepSample]:
    return [
        StepSample(allocated, filled, filled, running, waiting, is_short)
        for allocated, filled, running, waiting, is_short in rows
    ]


def test_fills_says_how_many_slots_of_each_page_hold_a_token() -> None:
    assert fills(9, 4) == [4, 4, 1]
    assert fills(8, 4) == [4, 4]
    assert fills(0, 4) == []


def test_a_step_is_counted_while_it_holds_its_pages() -> None:
    engine = make_engine(16)

    samples = engine.run(make_work("a", 6, 3))

    assert [sample.allocated_slots for sample in samples] == [8, 8, 8]
    assert [sample.filled_slots for sample in samples] == [6, 7, 8]
    assert engine.scheduler.cache.allocator.num_used == 0


def test_a_shared_page_is_counted_once_and_its_tokens_once_for_each_holder() -> None:
    engine = make_engine(16)
    engine.add(Work("a", range(100, 109), 8))
    engine.step()
    engine.add(Work("b", [*range(100, 108), 200], 8))
    engine.step()

    sample = engine.watch.samples[-1]

    assert sample.num_tokens == 10 + 9
    assert sample.filled_slots == 8 + 2 + 1
    assert sample.allocated_slots == 4 * PAGE_SIZE


@pytest.mark.parametrize("prefix_cache", [True, False])
def test_used_pages_are_exactly_those_that_the_page_tables_name(prefix_cache: bool) -> None:
    engine = make_engine(24, prefix_cache=prefix_cache)
    engine.add(*(Work(name, [*range(100, 107), ord(name)], 9) for name in "abcdef"))
    used, named = [], []
    for _ in range(8):
        engine.step()
        used.append(engine.scheduler.cache.allocator.num_used)
        named.append(len({page for table in engine.page_tables() for page in table.page_ids}))

    assert used == named
    assert max(used) > 0


def test_requests_that_wait_for_pages_make_a_step_short() -> None:
    engine = make_engine(4)

    samples = engine.run(make_work("a", 7, 4), make_work("b", 7, 4), make_work("c", 7, 4))

    assert samples[0].num_waiting == 1
    assert samples[0].is_short
    assert not samples[-1].is_short


def test_a_reservation_is_held_whole_from_start_to_end() -> None:
    samples = simulate([make_work("a", 6, 3)], 32, exact_reservation, 64)

    assert [sample.allocated_slots for sample in samples] == [9, 9, 9]
    assert [sample.filled_slots for sample in samples] == [6, 7, 8]


def test_pre_allocation_runs_as_many_as_the_longest_would_fit() -> None:
    works = [make_work(name, 6, 5) for name in "abcde"]

    samples = simulate(works, 2 * PRE_ALLOCATED_TOKENS, pre_allocation, 64)

    assert max(sample.num_running for sample in samples) == 2
    assert samples[0].num_waiting == 3
    assert samples[0].is_short


def test_the_simulation_decodes_first_and_cuts_prompts_to_the_budget() -> None:
    works = [make_work("a", 6, 4), make_work("b", 9, 2)]

    samples = simulate(works, 64, exact_reservation, 8)

    # a's prompt and 2 of b's; then one of a and the 7 that b lacks; then one of each.
    assert [sample.filled_slots for sample in samples] == [6 + 2, 7 + 9, 8 + 10, 9]


def test_slots_are_contiguous_so_two_gaps_do_not_make_one() -> None:
    pool = ContiguousPool(9)
    runs = [pool.try_take(3) for _ in range(3)]
    assert runs[0] is not None
    assert runs[2] is not None

    pool.give_back(runs[0])
    pool.give_back(runs[2])

    assert pool.try_take(4) is None
    assert pool.try_take(2) == (0, 2)
    assert pool.num_taken == 5


def test_load_is_counted_from_the_first_short_step_to_the_last_that_has_waiting() -> None:
    samples = samples_of(
        (10, 1, 1, 9, False),
        (40, 30, 4, 5, True),
        (40, 40, 2, 1, False),
        (10, 1, 1, 0, False),
    )

    figures = LoadFigures.of(samples, num_slots=50)

    assert figures.num_steps == 2
    assert figures.unfilled_percent == pytest.approx(12.5)
    assert figures.utilisation_percent == pytest.approx(70)
    assert figures.mean_running == pytest.approx(3)
    assert figures.peak_running == 4
    assert figures.mean_tokens == pytest.approx((30 / 4 + 40 / 2) / 2)


def test_a_load_that_never_waits_for_memory_is_refused() -> None:
    with pytest.raises(AssertionError, match="too small for the pool"):
        LoadFigures.of(samples_of((10, 1, 1, 9, False)), num_slots=50)
