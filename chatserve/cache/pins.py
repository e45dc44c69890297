"""Prefixes that are never evicted, by name, and how many pages they may take.

Owns the pins: which node each name holds a lock on. Knows neither how a prefix was computed nor
who asked for it.

Pinned pages are lost to everybody else, so there are two bounds: one for all pins together, which
leaves room for one request of the longest context, and one for each tenant, which may have one of
its own. A page counts once for
a tenant, however many of its pins share it, and pages of the operator's preamble count for the
operator.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from chatserve.cache.page_allocator import PageId
from chatserve.cache.radix_match import Match
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import ScopePath


class PrefixName(NamedTuple):
    """A named prefix of a tenant; the tenant is empty for the operator's preamble."""

    tenant: str
    name: str


@dataclass(frozen=True, slots=True)
class PinLimits:
    """How many pages may be pinned: by all together, and by a tenant without a bound of its own."""

    total_pages: int
    tenant_pages: int


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a prefix cannot be pinned: it needs more pages than are left under one of the limits."""

    needed: int
    left: int
    limit: int
    is_tenants: bool


class Pins:
    """Named locks on nodes of the tree.

    Owns: the names and what each holds. Used from: the prefix cache.
    """

    def __init__(self, tree: RadixTree, limits: PinLimits):
        self._tree = tree
        self.limits = limits
        self._own_bounds: dict[str, int] = {}
        self._nodes: dict[PrefixName, RadixNode] = {}
        self.num_pages = 0

    def __contains__(self, name: PrefixName) -> bool:
        return name in self._nodes

    @property
    def names(self) -> list[PrefixName]:
        return list(self._nodes)

    def bound_tenants(self, bounds: Mapping[str, int]) -> None:
        """Give these tenants, and no others, bounds of their own. What is pinned stays pinned."""
        self._own_bounds = dict(bounds)

    def shortfall(
        self, match: Match, num_tokens: int, scopes: ScopePath, tenant: str
    ) -> Shortfall | None:
        """Return what is missing to pin `num_tokens` tokens that begin with `match`, or None."""
        pinned = self._pinned_nodes()
        size = self._tree.page_size
        on_path = sum(len(n.pages) for n in self._tree.path_to(match.node) if n in pinned)
        num_known = min(on_path, len(match.pages))
        if match.num_tokens(size) == num_tokens and _is_tail(match, pinned, size):
            num_known += 1
        ends = range((num_known + 1) * size, num_tokens + size, size)
        owners = Counter(scopes.span_at(min(end, num_tokens) - 1).scope.tenant for end in ends)
        left = self.limits.total_pages - self.num_pages
        if owners.total() > left:
            return Shortfall(owners.total(), left, self.limits.total_pages, is_tenants=False)
        bound = self._own_bounds.get(tenant, self.limits.tenant_pages)
        left = bound - self.num_pages_of(tenant)
        if tenant and owners[tenant] > left:
            return Shortfall(owners[tenant], left, bound, is_tenants=True)
        return None

    def hold(self, name: PrefixName, node: RadixNode) -> None:
        """Lock the path to `node` under a name that is free."""
        assert name not in self._nodes, f"{name} is pinned already"
        self._tree.inc_lock_ref(node)
        self._nodes[name] = node
        self._recount()

    def let_go(self, name: PrefixName) -> list[PageId]:
        """Give a name up; return the pages that nobody holds any more. Idempotent."""
        node = self._nodes.pop(name, None)
        dropped = self._tree.dec_lock_ref(node) if node is not None else []
        self._recount()
        return dropped

    def pages_of(self, name: PrefixName) -> list[PageId]:
        """Return the pages of a pinned prefix, in order."""
        path = self._tree.path_to(self._nodes[name])
        return [page for node in reversed(path) for page in node.pages]

    def num_pages_of(self, tenant: str) -> int:
        """Return how many pages are pinned for a tenant."""
        return sum(len(node.pages) for node in self._pinned_nodes() if node.scope.tenant == tenant)

    def holds(self, node: RadixNode) -> bool:
        """Tell whether a pin ends at or below `node`."""
        return node in self._pinned_nodes()

    def tenants_by_node(self) -> dict[RadixNode, set[str]]:
        """Return for whom each pinned node is pinned, the empty name being the operator's."""
        tenants: dict[RadixNode, set[str]] = {}
        for name, node in self._nodes.items():
            for step in self._tree.path_to(node):
                tenants.setdefault(step, set()).add(name.tenant)
        return tenants

    def check_invariants(self) -> None:
        """Recount what is pinned. For tests and debugging."""
        assert self.num_pages == sum(len(node.pages) for node in self._pinned_nodes())
        assert self.num_pages <= self.limits.total_pages, f"{self.num_pages} pages are pinned"
        locks = Counter(step for n in self._nodes.values() for step in self._tree.path_to(n))
        for node, count in locks.items():
            assert node.lock_ref >= count, f"{count} pins hold a node with {node.lock_ref} locks"

    def _pinned_nodes(self) -> set[RadixNode]:
        return set(self.tenants_by_node())

    def _recount(self) -> None:
        self.num_pages = sum(len(node.pages) for node in self._pinned_nodes())


def _is_tail(match: Match, nodes: set[RadixNode], page_size: int) -> bool:
    """Tell whether a match ends where one of `nodes` does, inside a page."""
    ends = {(node.pages[-1], (len(node.key) - 1) % page_size + 1) for node in nodes}
    return (match.partial_page, match.partial_tokens) in ends
