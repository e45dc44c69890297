"""The benchmark of the start: phases between the lines of a log, and their medians."""

import io

from benchmarks.start_time import PHASES, LineClock, Start, summarise


def test_a_phase_ends_with_the_first_line_that_says_so() -> None:
    log = io.StringIO("".join(f"12:00 INFO {marker} 42\n" for marker in PHASES.values()))

    clock = LineClock(log, began_s=0.0)
    clock.join()

    assert list(clock.ends_s) == list(PHASES)
    assert sorted(clock.ends_s.values()) == list(clock.ends_s.values())


def test_other_lines_end_nothing() -> None:
    clock = LineClock(io.StringIO("INFO stopping\n\nsome words\n"), began_s=0.0)
    clock.join()

    assert clock.ends_s == {}


def test_each_figure_has_a_median_of_its_own() -> None:
    starts = [
        Start({"imports": 1.0, "plan": 9.0}, ready_s=10.0, cpu_s=3.0),
        Start({"imports": 2.0, "plan": 3.0}, ready_s=5.0, cpu_s=1.0),
        Start({"imports": 3.0, "plan": 4.0}, ready_s=7.0, cpu_s=2.0),
    ]

    middle = summarise(starts)

    assert middle == Start({"imports": 2.0, "plan": 4.0}, ready_s=7.0, cpu_s=2.0)
