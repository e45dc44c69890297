"""What the prefix cache must find, by brute force, and what its pages hold, kept beside it.

Owns no behaviour that is tested: it reads the tree path by path and token by token, where the cache
walks by pages, keys and bisection. Knows of requests only their tokens and the pages they hold.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PageCopy
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import PUBLIC, Scope, ScopePath
from chatserve.engine.request import Request


class Slot(NamedTuple):
    """One token in a page, and who may know of it."""

    token_id: int
    scope: Scope


Path = tuple[Slot, ...]
"""The tokens from the root to the end of a node, each with the scope of its page."""


def live_paths(tree: RadixTree) -> list[Path]:
    """Return the path to every node that may be found."""
    stack: list[tuple[Path, RadixNode]] = [((), tree.root)]
    paths: list[Path] = []
    while stack:
        path, node = stack.pop()
        for child in node.children:
            below = (*path, *(Slot(token_id, child.scope) for token_id in child.key))
            paths.append(below)
            stack.append((below, child))
    return paths


def longest_visible(
    paths: Iterable[Path], token_ids: Sequence[int], scopes: ScopePath, page_size: int
) -> int:
    """Return how many leading tokens of a prompt are known to whoever has its scopes."""
    return max((_visible(path, token_ids, scopes, page_size) for path in paths), default=0)


def _visible(path: Path, token_ids: Sequence[int], scopes: ScopePath, page_size: int) -> int:
    """Count tokens one by one.

    A page is open in each scope that the prompt is in from the page's beginning on, up to where the
    prompt leaves that scope. What follows a page can only be reached if the prompt's own page would
    be in the same scope.
    """
    count = 0
    for slot, token_id in zip(path, token_ids, strict=False):
        open_until = scopes.scopes_from(count // page_size * page_size).get(slot.scope, 0)
        if slot.token_id != token_id or count >= open_until:
            break
        count += 1
        if count % page_size == 0 and slot.scope != scopes.span_at(count - 1).scope:
            break
    return count


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading tokens agree."""
    pairs = zip(a, b, strict=False)
    return next((index for index, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


PageKey = tuple[Scope, tuple[int, ...]]


def page_keys(token_ids: Sequence[int], scopes: ScopePath, page_size: int) -> list[PageKey]:
    """Return what tells the pages of a prefix apart: whose each is, and its tokens."""
    starts = range(0, len(token_ids), page_size)
    pages = [tuple(token_ids[start : start + page_size]) for start in starts]
    return [
        (scopes.span_at(start + len(page) - 1).scope, page)
        for start, page in zip(starts, pages, strict=True)
    ]


def pinned_prefixes(pins: Iterable[Sequence[PageKey]]) -> set[tuple[PageKey, ...]]:
    """Return one entry for every page that these pins take, a shared one once."""
    return {tuple(keys[: end + 1]) for keys in pins for end in range(len(keys))}


def pages_by_tenant(prefixes: Iterable[tuple[PageKey, ...]]) -> Counter[str]:
    """Count pinned pages by who has to answer for them."""
    return Counter(keys[-1][0].tenant for keys in prefixes)


class PageShadow:
    """What each slot of the pool would hold, and who may know of it.

    Copies wait for the next write, as they wait for the next step: then all sources are read before
    any destination is written. What was copied is from then on as public as its tokens are to the
    request that copied it.
    """

    def __init__(self, num_pages: int, page_size: int):
        self._page_size = page_size
        self._pages: list[list[Slot | None]] = [[None] * page_size for _ in range(num_pages)]
        self._copies: list[tuple[PageCopy, list[Slot | None]]] = []

    def copy(self, copy: PageCopy, request: Request) -> None:
        """Read the source; it is not written before all copies of the step have run."""
        assert request.held is not None
        slots = self._pages[copy.source][: copy.num_tokens]
        _check_known(request, slots)
        start = request.num_computed_tokens - copy.num_tokens
        spans = [request.held.scopes.span_at(start + offset) for offset in range(copy.num_tokens)]
        copied = [
            Slot(slot.token_id, span.scope) if slot else None
            for slot, span in zip(slots, spans, strict=True)
        ]
        self._copies.append((copy, copied + [None] * (self._page_size - len(copied))))

    def run_copies(self) -> None:
        for copy, slots in self._copies:
            self._pages[copy.destination] = slots
        self._copies = []

    def write(self, request: Request, end: int) -> None:
        """Compute the tokens of a request up to `end`."""
        assert request.held is not None
        assert not self._copies, "a step writes before its copies have run"
        for position in range(request.num_computed_tokens, end):
            scope = request.held.scopes.span_at(position).scope
            page = self._pages[request.held.page_ids[position // self._page_size]]
            page[position % self._page_size] = Slot(request.token_ids[position], scope)

    def check(self, request: Request) -> None:
        """Crash unless a request's pages hold its tokens, and none that it may not know of."""
        assert request.held is not None
        slots = self._read(request.held.page_ids)[: request.num_computed_tokens]
        tokens = [slot.token_id if slot else None for slot in slots]
        assert tokens == request.token_ids[: request.num_computed_tokens], "pages hold other tokens"
        _check_known(request, slots)

    def _read(self, page_ids: Iterable[PageId]) -> list[Slot | None]:
        return [slot for page_id in page_ids for slot in self._pages[page_id]]


def _check_known(request: Request, slots: Sequence[Slot | None]) -> None:
    """Crash if a request reads what it may not know of."""
    assert request.held is not None
    own = {PUBLIC, Scope(request.tenant), *(span.scope for span in request.held.scopes.spans)}
    foreign = {slot.scope for slot in slots if slot} - own
    assert not foreign, f"{request.tenant}/{request.user} reads what {foreign} computed"
