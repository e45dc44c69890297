"""Which texts are tokenised."""

from collections.abc import Callable

import pytest

from chatserve.text.tokenizer import Tokenizer


def lexed_lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return where the length of every text is noted that is tokenised from now on."""
    lengths: list[int] = []
    encode: Callable[[Tokenizer, str], list[int]] = Tokenizer._encode_joined

    def recorded(tokenizer: Tokenizer, text: str) -> list[int]:
        lengths.append(len(text))
        return encode(tokenizer, text)

    monkeypatch.setattr(Tokenizer, "_encode_joined", recorded)
    return lengths
