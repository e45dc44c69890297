"""The pieces of a prompt, between the template that makes them and the tokenizer that encodes them.

A prompt is a list of segments. Where one came from decides what it may become: only a `Control`,
which comes from the scaffolding of a chat template, may become the id of a control token. `Plain`
text is characters whatever they spell, and `Verbatim` ids are taken as they are.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Plain:
    """Text without any control token, of the scaffolding or of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Control:
    """One control token, by its string."""

    token: str


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Token ids that the model produced itself; nothing merges with them across their borders."""

    token_ids: tuple[int, ...]


Segment: TypeAlias = Plain | Control | Verbatim
