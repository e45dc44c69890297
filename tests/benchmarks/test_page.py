"""Whether the page keeps its targets is judged by its worst visit and its worst key."""

from dataclasses import replace

import pytest

from benchmarks.page import KEY_TARGET_MS, LOAD_TARGET_MS, Visit, missed_targets

GOOD = Visit(
    load_ms=700,
    key_median_ms=29,
    key_p95_ms=40,
    key_worst_ms=49.9,
    typing_task_ms=0,
    longest_task_ms=80,
)


def test_targets_hold_when_every_visit_keeps_them() -> None:
    assert missed_targets([GOOD, GOOD]) == []


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "later", "last"])
def test_one_slow_visit_misses_the_target_of_the_load(place: int) -> None:
    visits = [GOOD, GOOD, GOOD]
    visits[place] = replace(GOOD, load_ms=LOAD_TARGET_MS)

    (missed,) = missed_targets(visits)

    assert missed == "load took 1000 ms, and 1000 are the target"


def test_one_slow_key_misses_the_target_of_keys() -> None:
    visits = [replace(GOOD, key_worst_ms=KEY_TARGET_MS + 70), GOOD]

    assert missed_targets(visits) == ["key took 120 ms, and 50 are the target"]
