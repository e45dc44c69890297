"""Which strings of a vocabulary steer the model, and where they stand in a text.

Owns the distinction between three kinds of added tokens of a `tokenizer.json`:

- *special*: marked so by the tokenizer (`<|im_end|>`). Never part of an answer's text.
- *markup*: not marked, yet with a meaning beyond its characters (`<think>`). Part of the text.
- runs of whitespace, which are ordinary vocabulary. Not listed here.

Special and markup together are the control tokens: user text never becomes one of them. A single
character is never one, since it could not be told from the same character in a message.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chatserve.text.segments import Control, Plain, Segment

_WHITESPACE_SYMBOL = "▁"  # how SentencePiece vocabularies spell a space


class ControlTokens:
    """The control tokens of one vocabulary.

    Owns: the strings with their ids, and the pattern that finds them. Immutable.
    Used from: any thread.
    """

    def __init__(self, special: Mapping[str, int], markup: Mapping[str, int]) -> None:
        self.special = frozenset(special)
        self.ids: Mapping[str, int] = {**special, **markup}
        self._pattern = re.compile(any_of(self.ids))

    @classmethod
    def from_added_tokens(cls, added_tokens: Iterable[Mapping[str, Any]]) -> "ControlTokens":
        """Sort the `added_tokens` of a `tokenizer.json` into the kinds."""
        special: dict[str, int] = {}
        markup: dict[str, int] = {}
        for token in added_tokens:
            content = token["content"]
            if len(content) < 2:
                continue
            if token["special"]:
                special[content] = token["id"]
            elif content.replace(_WHITESPACE_SYMBOL, " ").strip():
                markup[content] = token["id"]
        return cls(special, markup)

    def split(self, text: str) -> Iterator[Segment]:
        """Yield the control tokens of `text` and the plain text between them, in order."""
        end = 0
        for found in self._pattern.finditer(text):
            if found.start() > end:
                yield Plain(text[end : found.start()])
            yield Control(found[0])
            end = found.end()
        if end < len(text):
            yield Plain(text[end:])

    def stands_first_in(self, text: str) -> bool:
        return self._pattern.match(text) is not None


def any_of(tokens: Iterable[str]) -> str:
    """Return a pattern for any of `tokens`, the longest where several match.

    The test for the first character only saves time: it skips ordinary text without trying
    hundreds of reserved tokens at each place.
    """
    longest_first = sorted(tokens, key=len, reverse=True)
    if not longest_first:
        return r"(?!)"
    first_characters = "".join(sorted({re.escape(token[0]) for token in longest_first}))
    return f"(?=[{first_characters}])(?:{'|'.join(map(re.escape, longest_first))})"
