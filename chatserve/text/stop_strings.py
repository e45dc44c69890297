"""Where an answer ends because it says something it was told to stop at.

Owns the part of a text that may still turn out to be the start of a stop string, and nothing more
is ever held back. The text is taken in character by character, so that the result doesn't depend on
how it was cut into pieces: the stop string that is complete first ends the text, and of several
that are complete at once the longest, since it began first.

Each stop string is followed with the automaton of Knuth, Morris and Pratt: `matched` is the
length of its longest beginning that the text ends with.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StopResult:
    """What a piece of text released: `text` may be shown, and if `stopped` nothing follows it."""

    text: str
    stopped: bool


class StopStrings:
    """Watches the text of one answer for its stop strings.

    Owns: the held-back suffix. Used from: one thread, the one that drives the answer.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._searches = [_Search(stop) for stop in dict.fromkeys(stops)]
        self._held = ""

    def push(self, text: str) -> StopResult:
        """Take text in and return what is certain not to belong to a stop string."""
        if not self._searches:
            return StopResult(text, stopped=False)
        for position, character in enumerate(text):
            complete = [s.length for s in self._searches if s.advance(character) == s.length]
            if complete:
                ending = self._held + text[: position + 1]
                self._held = ""
                return StopResult(ending[: -max(complete)], stopped=True)
        pending = self._held + text
        num_held = max((search.matched for search in self._searches), default=0)
        shown = len(pending) - num_held
        self._held = pending[shown:]
        return StopResult(pending[:shown], stopped=False)

    def finish(self) -> str:
        """Return what was held back, now that no more text comes."""
        held, self._held = self._held, ""
        return held


class _Search:
    """One stop string and how much of it the text ends with. Owns: `matched`."""

    def __init__(self, stop: str) -> None:
        assert stop, "an empty stop string would end every answer"
        self.length = len(stop)
        self.matched = 0
        self._stop = stop
        self._fallback = _borders(stop)

    def advance(self, character: str) -> int:
        """Take one character in and return the new `matched`."""
        while self.matched and self._stop[self.matched] != character:
            self.matched = self._fallback[self.matched - 1]
        if self._stop[self.matched] == character:
            self.matched += 1
        return self.matched


def _borders(pattern: str) -> list[int]:
    """Return for each prefix of `pattern` the length of its longest proper border."""
    borders = [0] * len(pattern)
    length = 0
    for end in range(1, len(pattern)):
        while length and pattern[end] != pattern[length]:
            length = borders[length - 1]
        if pattern[end] == pattern[length]:
            length += 1
        borders[end] = length
    return borders
