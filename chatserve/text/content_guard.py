"""How a message's content goes through a chat template without posing as scaffolding.

A template is a program: it may trim, split or inspect a content, so that nobody can say from the
outside which characters of its output came from where. This module writes the answer into the
characters themselves. A *mark*, a string that no content contains, is put inside each control
token that a content spells out. The template then works on the real text, and in its output an
unbroken control token is scaffolding. The marks are taken out once that is decided.

A token that would be pieced together across a content's border is broken too: a content that ends
like the start of a token, or starts like the end of one, gets a mark there. The mark stands at the
innermost side of surrounding whitespace, so that a template that trims still trims.

Rejected: placeholders instead of contents (a template that trims one leaves the content untrimmed)
and string subclasses that remember their origin (`"".join` forgets it).
"""

import re
import secrets
from collections.abc import Iterable, Sequence

from chatserve.text.control_tokens import any_of


class ContentGuard:
    """Breaks the given control tokens in contents.

    Owns: the patterns for one set of tokens. Immutable.
    Used from: any thread.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        tokens = sorted(tokens)
        self._token_start = re.compile(f"(?={any_of(tokens)}).", re.DOTALL)
        self._beginnings = tuple({token[:cut] for token in tokens for cut in range(1, len(token))})
        self._endings = tuple({token[cut:] for token in tokens for cut in range(1, len(token))})

    def guard(self, content: str, mark: str) -> str:
        """Return `content` with marks, such that removing them gives `content` again."""
        body = content.strip()
        if not body:
            return content
        start = content.index(body)
        broken = self._token_start.sub(lambda found: found[0] + mark, body)
        before = mark if body.startswith(self._endings) else ""
        after = mark if body.endswith(self._beginnings) else ""
        return content[:start] + before + broken + after + content[start + len(body) :]


def fresh_mark(contents: Sequence[str]) -> str:
    """Return a string that none of `contents` contains and that no filter of a template changes.

    It is drawn anew for each prompt, so that no content can be written to contain it. Digits stay
    what they are under upper, lower, title, escape and tojson.
    """
    while True:
        mark = f"~{secrets.randbits(96):029d}~"
        if not any(mark in content for content in contents):
            return mark
