"""Finding the longest known prefix of a prompt in the radix tree.

Owns the walk down the tree. Changes nothing, not even recency, and counts nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from chatserve.cache.children import Edge, common_length
from chatserve.cache.page_allocator import PageId
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.scope import ScopePath


@dataclass(frozen=True, slots=True)
class Match:
    """The longest prefix the tree knows. Reading it changed nothing.

    Whole `pages` lead to a place inside or at the end of `node` (`node_pages` of its pages belong
    to the match). If there is a page that begins with the tokens that follow, `partial_page` is
    that page and `partial_tokens` how many of them it holds; where they are all that it holds,
    `tail` is its node.
    """

    node: RadixNode
    node_pages: int
    pages: tuple[PageId, ...]
    partial_page: PageId | None = None
    partial_tokens: int = 0
    tail: RadixNode | None = None

    def num_tokens(self, page_size: int) -> int:
        return len(self.pages) * page_size + self.partial_tokens

    @property
    def ends_at_node(self) -> bool:
        return self.node_pages == len(self.node.pages)

    def with_partial(self, page: PageId | None, num_tokens: int) -> "Match":
        """Return the same whole pages with another page for the tokens that follow."""
        return replace(self, partial_page=page, partial_tokens=num_tokens, tail=None)


def match_prefix(root: RadixNode, token_ids: list[int], scopes: ScopePath, page_size: int) -> Match:
    """Return the longest prefix of `token_ids` that is known and open to `scopes`.

    1. Walk whole pages: the child whose first page equals the next page, in the scope that this
       page has in the prompt, as far as it agrees.
    2. Where no whole page agrees any more, take the page with the longest common prefix: the next
       one of the node we stopped in, or the best first page among the children, in any scope that
       is still open to the prompt.
    """
    node, taken, pages, position = root, 0, list[PageId](), 0
    while taken == len(node.pages):
        page = tuple(token_ids[position : position + page_size])
        if len(page) < page_size:
            break
        scope = scopes.span_at(position + page_size - 1).scope
        child = node.children.get(Edge(scope, page))
        if child is None:
            break
        end = min(len(token_ids), scopes.scopes_from(position)[scope])
        taken = common_pages(child, token_ids, position, end, page_size)
        pages += child.pages[:taken]
        position += taken * page_size
        node = child
    page = tuple(token_ids[position : position + page_size])
    match = Match(node, taken, tuple(pages))
    for scope, end in scopes.scopes_from(position).items():
        like = _page_like(node, taken, Edge(scope, page), page_size)
        if like is None:
            continue
        common = min(common_length(page, like.token_ids), end - position)
        if common > match.partial_tokens:
            is_tail = common == len(like.token_ids) < page_size
            match = match.with_partial(like.page_id, common)
            match = replace(match, tail=like.node if is_tail else None)
    return match


class _Page(NamedTuple):
    """A page of the tree: where it is, and its tokens."""

    node: RadixNode
    page_id: PageId
    token_ids: Sequence[int]


def _page_like(node: RadixNode, taken: int, edge: Edge, page_size: int) -> _Page | None:
    """Return the page behind the first `taken` of `node` that is most like an edge's page.

    Of several, one that holds nothing else.
    """
    if taken < len(node.pages):
        rest = node.key[taken * page_size : (taken + 1) * page_size]
        return _Page(node, node.pages[taken], rest) if node.scope == edge.scope else None
    known = node.children.neighbour(edge)
    if known is None:
        return None
    common = common_length(edge.first_page, known.edge.first_page)
    known = node.children.get(Edge(edge.scope, edge.first_page[:common])) or known
    return _Page(known, known.pages[0], known.edge.first_page)


def common_pages(
    node: RadixNode, token_ids: list[int], position: int, end: int, page_size: int
) -> int:
    """Return how many whole pages of `node` agree with `token_ids` from `position` to `end`."""
    limit = min(len(node.key), end - position) // page_size
    if node.key[: limit * page_size] == token_ids[position : position + limit * page_size]:
        return limit
    low, high = 0, limit - 1  # the first `low` pages agree, the first `high + 1` do not
    while low < high:
        middle = (low + high + 1) // 2
        start, end = low * page_size, middle * page_size
        if node.key[start:end] == token_ids[position + start : position + end]:
            low = middle
        else:
            high = middle - 1
    return low
