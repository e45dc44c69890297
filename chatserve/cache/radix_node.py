"""The node of the radix tree: one edge, its pages, and its place among its siblings.

Owns what a node is and how a child is found. Knows no insertion and no order of eviction.

Children are sorted by edge: scope first, then the tokens of the first page. One page is found by
bisection however many there are, and what shares the longest prefix with a page that is not there
stands next to the place where it would be inserted.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chatserve.cache.page_allocator import PageId
from chatserve.cache.scope import NO_RETENTION, PUBLIC, Retention, Scope


class Edge(NamedTuple):
    """What tells siblings apart."""

    scope: Scope
    first_page: tuple[int, ...]


ROOT_EDGE = Edge(PUBLIC, ())


@dataclass(slots=True, eq=False)
class RadixNode:
    """One edge of the tree. Mutable; changed by the tree only.

    `lock_ref` counts the requests and pins at or below. `last_access` is a logical clock for
    eviction, `last_use_s` a real one for expiry. A detached node is no child of its parent any
    more, or of a parent that is not; it stays until the last request that holds it lets go.
    """

    key: list[int]
    pages: list[PageId]
    parent: "RadixNode | None"
    edge: Edge = ROOT_EDGE
    retention: Retention = NO_RETENTION
    children: list["RadixNode"] = field(default_factory=list)
    lock_ref: int = 0
    last_access: int = 0
    last_use_s: float = 0.0
    is_detached: bool = False

    @property
    def scope(self) -> Scope:
        return self.edge.scope

    @property
    def is_evictable(self) -> bool:
        """An unlocked leaf that is still in the tree; never the root."""
        return not self.children and self.lock_ref == 0 and self.parent is not None

    @property
    def expires_s(self) -> float:
        """When the node may not be found any more, unless it is used before."""
        return self.last_use_s + self.retention.ttl_s

    def child(self, edge: Edge) -> "RadixNode | None":
        """Return the child with exactly this edge."""
        index = bisect_left(self.children, edge, key=_edge)
        if index < len(self.children) and self.children[index].edge == edge:
            return self.children[index]
        return None

    def neighbour(self, edge: Edge) -> "RadixNode | None":
        """Return the child of the edge's scope that shares most leading tokens with its page."""
        index = bisect_left(self.children, edge, key=_edge)
        beside = [
            child
            for child in self.children[max(0, index - 1) : index + 1]
            if child.scope == edge.scope
        ]
        page = edge.first_page
        return max(beside, key=lambda each: common_length(page, each.edge.first_page), default=None)

    def add_child(self, child: "RadixNode") -> None:
        """Put a child where its edge belongs."""
        self.children.insert(bisect_left(self.children, child.edge, key=_edge), child)

    def replace_child(self, old: "RadixNode", new: "RadixNode | None") -> None:
        """Put `new`, which has the same edge, in the place of a child, or nothing."""
        index = bisect_left(self.children, old.edge, key=_edge)
        assert self.children[index] is old, "a node is not where its edge belongs"
        self.children[index : index + 1] = [new] if new is not None else []


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading tokens two runs share."""
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return index
    return min(len(a), len(b))


def _edge(node: RadixNode) -> Edge:
    return node.edge
