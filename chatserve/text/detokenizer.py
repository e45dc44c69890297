"""Token ids to text while they arrive.

Owns the bytes of a character that isn't complete yet, and nothing else of a request. Tokens are
turned into bytes and the bytes into characters, so that the text depends on the ids alone and not
on how they were grouped, and so that each token costs the same however long the answer is.
"""

import codecs
from collections.abc import Iterable

from chatserve.text.tokenizer import Tokenizer


class IncrementalDetokenizer:
    """Gives the text of one answer piece by piece; joined, the pieces equal `Tokenizer.decode`.

    Owns: up to three bytes of a character that is still incomplete.
    Used from: one thread, the one that drives the answer.
    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._at_start = tokenizer.drops_leading_space
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_ids: Iterable[int]) -> str:
        """Take tokens in and return the characters that are now complete.

        U+FFFD stands for bytes that no later token can complete.
        """
        piece = self._tokenizer.decode_bytes(token_ids, skip_special=self._skip_special)
        if self._at_start and piece:
            self._at_start = False
            piece = piece.removeprefix(b" ")
        return self._utf8.decode(piece)

    def finish(self) -> str:
        """Return what was held back: U+FFFD if the answer ended within a character."""
        return self._utf8.decode(b"", final=True)
