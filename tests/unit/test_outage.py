"""An outage of the store is told when it begins, now and then, and when it is over."""

import logging

import pytest

from chatserve.store.outage import QUIET_S, REMIND_S, Outage


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged since the last call."""
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


def test_many_failures_are_one_outage(caplog: pytest.LogCaptureFixture) -> None:
    """Each loop of a process used to log each of its tries."""
    clock = Clock()
    outage = Outage(clock)
    outage.note_answer()

    for _ in range(50):
        clock.now += 0.2
        outage.note_failure(OSError("refused"))
    clock.now += QUIET_S
    outage.note_answer()
    outage.note_answer()

    assert told(caplog) == [
        "the store does not answer: refused; trying again until it does",
        "the store answers again, after 10.8 s",
    ]


def test_a_long_outage_is_told_again_after_half_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    outage = Outage(clock)
    outage.note_answer()
    outage.note_failure(OSError("refused"))
    told(caplog)

    for _ in range(4):
        clock.now += REMIND_S / 2
        outage.note_failure(OSError("refused"))

    assert told(caplog) == [
        "the store has not answered for 30 s",
        "the store has not answered for 60 s",
    ]


def test_a_part_of_a_cluster_that_is_away_is_one_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    outage = Outage(clock)
    outage.note_answer()

    for _ in range(20):
        clock.now += 0.2
        outage.note_failure(OSError("refused"))
        outage.note_answer()

    assert len(told(caplog)) == 1


def test_a_store_that_never_answered_is_somebody_elses_to_tell(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    Outage(Clock()).note_failure(OSError("refused"))

    assert told(caplog) == []
