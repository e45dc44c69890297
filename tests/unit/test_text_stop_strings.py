"""Stop strings: found across deltas, and nothing held back that cannot become one."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatserve.text.stop_strings import StopStrings


def run(stops: Iterable[str], pieces: Sequence[str]) -> tuple[str, bool]:
    """Return the text shown of an answer that comes in `pieces`, and whether it was stopped."""
    watch = StopStrings(stops)
    shown = ""
    for piece in pieces:
        result = watch.push(piece)
        shown += result.text
        if result.stopped:
            return shown, True
    return shown + watch.finish(), False


def expected(stops: Iterable[str], text: str) -> tuple[str, bool]:
    """Return the same by trying every end of the text, shortest first."""
    for end in range(1, len(text) + 1):
        lengths = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if lengths:
            return text[: end - max(lengths)], True
    return text, False


def test_a_stop_spanning_three_deltas_is_never_shown() -> None:
    watch = StopStrings(["\nUser:"])

    shown = [watch.push(piece) for piece in ("Hello\n", "Us", "er: more")]

    assert [result.text for result in shown] == ["Hello", "", ""]
    assert [result.stopped for result in shown] == [False, False, True]


def test_what_no_longer_can_become_a_stop_is_released_at_once() -> None:
    watch = StopStrings(["\nUser:"])

    shown = [watch.push(piece).text for piece in ("Hello\n", "Use", "ful")]

    assert shown == ["Hello", "", "\nUseful"]


def test_only_the_suffix_that_may_still_match_is_held() -> None:
    watch = StopStrings(["<|im_end|>"])

    assert watch.push("a < b and <<|im_").text == "a < b and <"
    assert watch.push("end|>").stopped


def test_a_repetitive_start_falls_back_to_the_longest_border() -> None:
    assert run(["aab"], list("aaab")) == ("a", True)


def test_the_stop_that_is_complete_first_wins() -> None:
    assert run(["abcd", "c"], ["abcd"]) == ("ab", True)


def test_of_two_that_are_complete_at_once_the_longer_wins() -> None:
    assert run(["c", "abc"], ["xabc"]) == ("x", True)


def test_finish_releases_an_unfinished_stop() -> None:
    watch = StopStrings(["###"])

    assert watch.push("done ##").text == "done "
    assert watch.finish() == "##"
    assert watch.finish() == ""


def test_without_stops_all_text_passes() -> None:
    result = StopStrings([]).push("anything")

    assert (result.text, result.stopped) == ("anything", False)


def test_an_empty_stop_is_a_broken_invariant() -> None:
    with pytest.raises(AssertionError, match="empty stop"):
        StopStrings(["ok", ""])


@given(
    stops=st.lists(st.text("ab<", min_size=1, max_size=5), max_size=4),
    pieces=st.lists(st.text("ab<", max_size=6), max_size=8),
)
def test_every_chunking_gives_the_text_of_the_whole(stops: list[str], pieces: list[str]) -> None:
    text = "".join(pieces)

    assert run(stops, pieces) == expected(stops, text)
    assert run(stops, list(text)) == expected(stops, text)


@given(
    stops=st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=3),
    text=st.text("abc", max_size=20),
)
def test_what_is_held_back_is_the_beginning_of_a_stop(stops: list[str], text: str) -> None:
    watch = StopStrings(stops)

    shown = ""
    for end, character in enumerate(text, 1):
        result = watch.push(character)
        shown += result.text
        if result.stopped:
            return
        held = text[len(shown) : end]
        assert not held or any(stop.startswith(held) and stop != held for stop in stops)
