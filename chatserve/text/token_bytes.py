"""The bytes that each token stands for, read from a `tokenizer.json`.

Owns the table from token to bytes. A token is a piece of a byte string, not of a text: a character
may be spread over several tokens, and only the whole byte string is UTF-8. Two spellings of bytes
are in use and both are read here: byte-level BPE writes every byte as one printable character;
SentencePiece writes text, with a symbol for the space and `<0x0A>` for a byte it has no piece for.
Any other decoder is refused by name rather than guessed at.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chatserve.errors import ModelError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a vocabulary writes bytes.

    `is_byte_level` excludes the others. `space_symbol` is None where a space is a space.
    `drops_leading_space`: the first token of a text carries a space that the text doesn't have.
    """

    is_byte_level: bool = False
    space_symbol: str | None = None
    has_byte_tokens: bool = False
    drops_leading_space: bool = False

    def num_bytes(self, token: str) -> int:
        """Return of how many bytes of text a token is made at most, by its string."""
        return len(token) if self.is_byte_level else len(token.encode())

    @classmethod
    def from_decoder(cls, decoder: Mapping[str, Any] | None) -> "Spelling":
        """Read the `decoder` of a `tokenizer.json`.

        Raises:
            ModelError: it is of a kind that isn't known here.
        """
        steps = list(_flatten(decoder)) if decoder else []
        kinds = {step["type"] for step in steps}
        if kinds == {"ByteLevel"}:
            return cls(is_byte_level=True)
        space_symbol = next(filter(None, map(_space_symbol, steps)), None)
        if space_symbol is None or not all(map(_is_known, steps)):
            raise ModelError(
                f"the tokenizer's decoder {steps} is not supported; "
                "supported are ByteLevel and those of SentencePiece models"
            )
        return cls(
            space_symbol=space_symbol,
            has_byte_tokens="ByteFallback" in kinds,
            drops_leading_space=any(map(_drops_leading_space, steps)),
        )


class TokenBytes:
    """The bytes of each token of one vocabulary.

    Owns: a memo of what was looked up, which only grows and is the same whoever fills it.
    Used from: any thread.
    """

    def __init__(
        self,
        spelling: Spelling,
        added_tokens: Mapping[int, str],
        id_to_token: Callable[[int], str | None],
    ) -> None:
        self._spelling = spelling
        self._added_tokens = added_tokens
        self._id_to_token = id_to_token
        self._memo: dict[int, bytes] = {}

    def __getitem__(self, token_id: int) -> bytes:
        """Return the bytes of a token; of an id that the vocabulary lacks, none."""
        known = self._memo.get(token_id)
        if known is None:
            known = self._memo[token_id] = self._look_up(token_id)
        return known

    def _look_up(self, token_id: int) -> bytes:
        added = self._added_tokens.get(token_id)
        if added is not None:
            return self._despace(added).encode()
        token = self._id_to_token(token_id)
        if token is None:
            return b""
        if self._spelling.is_byte_level and _BYTE_OF_CHARACTER.keys() >= set(token):
            return bytes(_BYTE_OF_CHARACTER[character] for character in token)
        byte_token = _BYTE_TOKEN.fullmatch(token) if self._spelling.has_byte_tokens else None
        return bytes.fromhex(byte_token[1]) if byte_token else self._despace(token).encode()

    def _despace(self, token: str) -> str:
        symbol = self._spelling.space_symbol
        return token if symbol is None else token.replace(symbol, " ")


def _flatten(decoder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if decoder["type"] != "Sequence":
        yield decoder
        return
    for step in decoder["decoders"]:
        yield from _flatten(step)


def _is_known(step: Mapping[str, Any]) -> bool:
    """Say whether `TokenBytes` does what this step of a SentencePiece decoder does."""
    match step:
        case {"type": "Metaspace" | "ByteFallback" | "Fuse"}:
            return True
        case {"type": "Strip", "content": " ", "start": 0 | 1, "stop": 0}:
            return True
    return _space_symbol(step) is not None


def _space_symbol(step: Mapping[str, Any]) -> str | None:
    match step:
        case {"type": "Metaspace", "replacement": str(symbol)}:
            return symbol
        case {"type": "Replace", "pattern": {"String": str(symbol)}, "content": " "}:
            return symbol
    return None


def _drops_leading_space(step: Mapping[str, Any]) -> bool:
    match step:
        case {"type": "Metaspace"}:
            return bool(step.get("prepend_scheme", "always") != "never")
        case {"type": "Strip", "start": start}:
            return bool(start)
    return False


def _byte_alphabet() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for.

    Printable Latin-1 characters stand for themselves. The other 68 bytes, in order, are written as
    the characters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in set(printable)]
    shifted = {chr(0x100 + rank): byte for rank, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | shifted


_BYTE_OF_CHARACTER = _byte_alphabet()
