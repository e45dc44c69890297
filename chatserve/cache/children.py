"""The children of one node of the radix tree.

Owns how a child is found, however many there are. Knows nothing of what a node holds.

One page is looked up as a whole, and compared as a whole: a hash only narrows the search. What
shares the longest prefix with a page that is not there stands next to where it would be in sorted
order, so the edges are kept sorted too. A child that goes leaves its edge behind in that order,
which is swept once an eighth of it is stale: taking one out of 50,000 at once would move them all.
What is stale is known by identity, since hashing every edge would cost more than the sweep.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from chatserve.cache.scope import Scope

if TYPE_CHECKING:
    from chatserve.cache.radix_node import RadixNode

_SPARED_STALE = 16


class Edge(NamedTuple):
    """What tells siblings apart: whose page it is, and the tokens of the first page."""

    scope: Scope
    first_page: tuple[int, ...]


class Children:
    """Nodes by edge, and their edges in order.

    Owns: both. Used from: the node that they are children of.
    """

    def __init__(self, *nodes: "RadixNode"):
        self._nodes = {node.edge: node for node in nodes}
        self._order = sorted(self._nodes)
        self._stale: set[int] = set()  # `id` of the edges in the order whose child is gone

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator["RadixNode"]:
        return iter(self._nodes.values())

    def get(self, edge: Edge) -> "RadixNode | None":
        """Return the child with exactly this edge."""
        return self._nodes.get(edge)

    def neighbour(self, edge: Edge) -> "RadixNode | None":
        """Return the child of the edge's scope that shares most leading tokens with its page."""
        index = bisect_left(self._order, edge)
        left = self._next_live(range(index - 1, -1, -1))
        right = self._next_live(range(index, len(self._order)))
        beside = [each for each in (left, right) if each and each.scope == edge.scope]
        if not beside:
            return None
        page = edge.first_page
        best = max(beside, key=lambda each: common_length(page, each.first_page))
        return self._nodes[best]

    def _next_live(self, indices: range) -> Edge | None:
        return next((e for i in indices if id(e := self._order[i]) not in self._stale), None)

    def add(self, node: "RadixNode") -> None:
        """Take in a child whose edge no other has."""
        assert node.edge not in self._nodes, f"there is a child {node.edge} already"
        self._nodes[node.edge] = node
        index = bisect_left(self._order, node.edge)
        if self._order[index : index + 1] == [node.edge]:
            self._stale.remove(id(self._order[index]))
            self._order[index] = node.edge
        else:
            self._order.insert(index, node.edge)

    def replace(self, old: "RadixNode", new: "RadixNode") -> None:
        """Put another node with the same edge in the place of a child."""
        assert self._nodes[old.edge] is old, "a node is not where its edge belongs"
        assert new.edge is old.edge, f"{new.edge} cannot take the place of {old.edge}"
        self._nodes[old.edge] = new

    def remove(self, node: "RadixNode") -> None:
        """Let a child go."""
        removed = self._nodes.pop(node.edge)
        assert removed is node, "a node is not where its edge belongs"
        self._stale.add(id(node.edge))
        if len(self._stale) > len(self._nodes) // 8 + _SPARED_STALE:
            self._order = [edge for edge in self._order if id(edge) not in self._stale]
            self._stale.clear()

    def check_invariants(self) -> None:
        """Recount the order. For tests and debugging."""
        assert self._order == sorted(set(self._order)), "edges are out of order, or there twice"
        live = {id(edge) for edge in self._order} - self._stale
        assert live == {id(node.edge) for node in self}, (
            "the order has other edges than the children"
        )
        assert len(self._order) == len(live) + len(self._stale), "what is stale is not in the order"
        assert all(node.edge == edge for edge, node in self._nodes.items())


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading tokens two runs share."""
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return index
    return min(len(a), len(b))
