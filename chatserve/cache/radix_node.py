"""The node of the radix tree: one edge, its pages, and who holds it.

Owns what a node is. Knows no matching, no insertion and no order of eviction.
"""

from dataclasses import dataclass, field

from chatserve.cache.children import Children, Edge
from chatserve.cache.page_allocator import PageId
from chatserve.cache.scope import NO_RETENTION, PUBLIC, Owner, Retention, Scope
from chatserve.prefix_digest import HASH_BYTES

ROOT_EDGE = Edge(PUBLIC, ())


@dataclass(slots=True, eq=False)
class RadixNode:
    """One edge of the tree. Mutable; changed by the tree only.

    `lock_ref` counts the requests and pins at or below. `last_access` is a logical clock for
    eviction, `last_use_s` a real one for expiry. A detached node is no child of its parent any
    more, or of a parent that is not; it stays until the last request that holds it lets go.
    `prefix_hashes` names the prefixes that end with its first pages, as far as somebody asked.

    For the order of eviction: whether a request ever started from what ends here (`was_reused`), of
    how many children that is true, how many others were evicted, and whether it is in the queue.

    For people to see, and for no decision: `num_hits` and `known_to` (`node_use.py`).
    """

    key: list[int]
    pages: list[PageId]
    parent: "RadixNode | None"
    edge: Edge = ROOT_EDGE
    retention: Retention = NO_RETENTION
    children: Children = field(default_factory=Children)
    lock_ref: int = 0
    last_access: int = 0
    last_use_s: float = 0.0
    is_detached: bool = False
    was_reused: bool = False
    num_reused_children: int = 0
    num_lost_children: int = 0
    is_queued: bool = False
    prefix_hashes: bytes = b""
    num_hits: int = 0
    known_to: tuple[Owner, ...] = ()

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

    def upper_half(self, num_pages: int, page_size: int) -> "RadixNode":
        """Return a node of the first pages, with all that was said and done of the whole."""
        return RadixNode(
            key=self.key[: num_pages * page_size],
            pages=self.pages[:num_pages],
            parent=self.parent,
            edge=self.edge,
            retention=self.retention,
            lock_ref=self.lock_ref,
            last_access=self.last_access,
            last_use_s=self.last_use_s,
            was_reused=self.was_reused,
            num_reused_children=int(self.was_reused),
            prefix_hashes=self.prefix_hashes[: num_pages * HASH_BYTES],
            num_hits=self.num_hits,
            known_to=self.known_to,
        )

    def truncate(self, num_pages: int, page_size: int) -> list[PageId]:
        """Forget all but the first pages; return the others."""
        cut = self.pages[num_pages:]
        del self.pages[num_pages:]
        del self.key[num_pages * page_size :]
        self.prefix_hashes = self.prefix_hashes[: num_pages * HASH_BYTES]
        return cut

    @property
    def was_shared(self) -> bool:
        """Several went on from here in different ways, as far as their pages have gone again."""
        return self.num_reused_children + self.num_lost_children >= 2
