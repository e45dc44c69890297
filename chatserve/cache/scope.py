"""Whose cached tokens a prompt may use, and whose its own become.

Owns the words for it: scopes, how long their pages are kept, and the row of spans that a prompt is
made of. Knows no tree and no pages' contents. Where the spans of a prompt end is decided by
`scope_map.py`.

A prompt runs from what everybody shares to what only its owner does, and never back:

    tokens   ├── operator's preamble ──┼── the tenant's prompt ──┼── the conversation ──> ...
    scope          public                     tenant                tenant, or one user of it

A page belongs to the span of its last token: a page that holds anything of the conversation is the
conversation's. So whoever reads a page may see every token in it.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Self

_USER = "user "


class Scope(NamedTuple):
    """A group of requests that may see each other's pages: everybody, a tenant, or a user of one.

    Part of the key under which the tree finds a page, next to the page's tokens.
    """

    tenant: str
    user: str = ""

    @classmethod
    def of_user(cls, tenant: str, user: str) -> Self:
        """Return the scope of one user; a conversation without a user has one of its own too."""
        return cls(tenant, f"{_USER}{user}")

    @property
    def only_user(self) -> str | None:
        """The user whose scope this is; None where more than one are in it."""
        return self.user.removeprefix(_USER) if self.user else None


PUBLIC = Scope("")


class Owner(NamedTuple):
    """Whose a prompt is: a user's, or the tenant's own, or the operator's where both are empty."""

    tenant: str
    user: str


OPERATOR = Owner("", "")


@dataclass(frozen=True, slots=True, order=True)
class Retention:
    """How long pages are kept that no request holds. The greater one wins where two apply.

    A higher `priority` is evicted later, whatever its use. `ttl_s` is for how many seconds an
    unused page may still be found; infinity leaves that to eviction.
    """

    priority: int = 0
    ttl_s: float = float("inf")


NO_RETENTION = Retention()


@dataclass(frozen=True, slots=True)
class Span:
    """The tokens of a prompt up to `end` that an earlier span does not cover."""

    scope: Scope
    end: int = sys.maxsize
    retention: Retention = NO_RETENTION


@dataclass(frozen=True, slots=True)
class ScopePath:
    """The spans of one prompt, in order; the last one has no end.

    Whose the prompt is decides nothing: two paths of the same spans are equal.
    """

    spans: tuple[Span, ...]
    owner: Owner = field(default=OPERATOR, compare=False)

    def __post_init__(self) -> None:
        ends = [span.end for span in self.spans]
        assert ends == sorted(set(ends)), f"spans end at {ends}"
        assert ends[-1:] == [sys.maxsize], "the last span has an end"

    def span_at(self, position: int) -> Span:
        """Return the span that the token at `position` is in."""
        return next(span for span in self.spans if position < span.end)

    def scopes_from(self, position: int) -> dict[Scope, int]:
        """Return the scopes in which a page that begins at `position` may be found.

        For each, up to which token it may be used: where the prompt enters a narrower scope.
        """
        return {span.scope: span.end for span in self.spans if position < span.end}

    def page_runs(self, first: int, end: int, page_size: int) -> Iterator[tuple[Span, int]]:
        """Cut whole pages `first` to `end` into runs of one span; yield each with its end."""
        while first < end:
            span = self.span_at((first + 1) * page_size - 1)
            first = min(end, span.end // page_size)
            yield span, first

    def shared_end(self, other: "ScopePath") -> int:
        """Return up to which token two prompts of the same tokens have the same scopes."""
        end = 0
        while end < sys.maxsize:
            ours, theirs = self.span_at(end), other.span_at(end)
            if ours.scope != theirs.scope:
                break
            end = min(ours.end, theirs.end)
        return end


SHARED_BY_ALL = ScopePath((Span(PUBLIC),))
