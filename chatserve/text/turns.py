"""Who says what in a piece of a prompt, read back from its tokens.

Owns the reading; which tokens begin a turn is known from the template (`turn_heads.py`). Roles are
told by special tokens alone, which nobody can type: a message that spells out the scaffolding of
the template is a message. A role that cannot be told so is not guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chatserve.text.segments import Control, Plain
from chatserve.text.tokenizer import Tokenizer
from chatserve.text.turn_heads import Head


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody says; `role` is None for what goes on from before the piece, or not told."""

    role: str | None
    text: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """A special token, or the text between two of them, of which `num_known` stood before."""

    content: Control | Plain
    num_known: int = 0

    @property
    def text(self) -> str:
        return self.content.text if isinstance(self.content, Plain) else ""


class TurnReader:
    """Reads the turns of one model's prompts.

    Owns: nothing but what it was given. Immutable.
    Used from: any thread.
    """

    def __init__(self, tokenizer: Tokenizer, heads: Mapping[Head, str]) -> None:
        """Take the beginnings of turns, the longest first."""
        self._tokenizer = tokenizer
        self._heads = heads

    def read(self, before: Sequence[int], token_ids: Sequence[int]) -> list[Turn]:
        """Return the turns in `token_ids`; the tokens right before may begin the first of them."""
        pieces = self._pieces(before, token_ids)
        turns = [Turn(None, pieces[0].text[pieces[0].num_known :])]
        index = 1
        while index < len(pieces) and not self._is_cut_head(pieces[index:]):
            head = self._head_at(pieces[index:])
            last = pieces[index + (len(head) if head else 2) - 1]
            begin = _end_of(head[-1], last.text) if head else 0
            said = last.text[max(begin, last.num_known) :]
            if head is None or begin < last.num_known:
                turns[-1] = Turn(turns[-1].role, turns[-1].text + said)
            else:
                turns.append(Turn(self._heads[head], said))
            index += len(head) if head else 2
        return [turn for turn in turns if turn.text.strip()]

    def _pieces(self, before: Sequence[int], token_ids: Sequence[int]) -> list[_Piece]:
        """Return texts, which may be empty, and the special tokens between them."""
        pieces: list[_Piece] = []
        start, ids = 0, [*before, *token_ids]
        for end, token_id in enumerate(ids):
            if self._tokenizer.is_special(token_id):
                pieces.append(self._text_piece(ids, start, end, len(before)))
                name = self._tokenizer.decode([token_id], skip_special=False)
                pieces.append(_Piece(Control(name)))
                start = end + 1
        pieces.append(self._text_piece(ids, start, len(ids), len(before)))
        return pieces

    def _text_piece(self, ids: Sequence[int], start: int, end: int, border: int) -> _Piece:
        known = self._tokenizer.decode(ids[start : min(border, end)])
        return _Piece(Plain(self._tokenizer.decode(ids[start:end])), len(known))

    def _head_at(self, pieces: Sequence[_Piece]) -> Head | None:
        return next((head for head in self._heads if _stands_at(pieces, head)), None)

    def _is_cut_head(self, pieces: Sequence[_Piece]) -> bool:
        """Tell whether the pieces are over before it is said whose turn they begin."""
        return self._head_at(pieces) is None and any(
            len(pieces) <= len(head)
            and _stands_at(pieces, (*head[: len(pieces) - 1], Plain("")))
            and _spelled(head[len(pieces) - 1]).startswith(_spelled(pieces[-1].content))
            for head in self._heads
        )


def _stands_at(pieces: Sequence[_Piece], head: Head) -> bool:
    """Tell whether pieces begin like a head, whose last text goes on with what is said."""
    if len(pieces) < len(head):
        return False
    contents = [_spelled(piece.content) for piece in pieces[: len(head)]]
    spelled = [_spelled(each) for each in head]
    return contents[:-1] == spelled[:-1] and contents[-1].startswith(spelled[-1])


def _spelled(content: Control | Plain) -> str:
    """Return the text without the space before its first word, which some vocabularies add."""
    return content.token if isinstance(content, Control) else content.text.lstrip(" ")


def _end_of(head_text: Control | Plain, text: str) -> int:
    """Return where in a text what is said begins, behind the end of a head."""
    return len(text) - len(text.lstrip(" ")) + len(_spelled(head_text))
