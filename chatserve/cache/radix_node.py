"""The node of the radix tree: one edge, its pages, and who holds it.

Owns what a node is. Knows no matching, no insertion and no order of eviction.
"""

from dataclasses import dataclass, field

from chatserve.cache.page_allocator import PageId


@dataclass(slots=True, eq=False)
class RadixNode:
    """One edge of the tree. Mutable; changed by the tree only.

    `first_page` is the sort key among siblings. `lock_ref` counts running requests at or below.
    """

    key: list[int]
    pages: list[PageId]
    parent: "RadixNode | None"
    first_page: tuple[int, ...] = ()
    children: list["RadixNode"] = field(default_factory=list)
    lock_ref: int = 0
    last_access: int = 0

    @property
    def is_evictable(self) -> bool:
        """An unlocked leaf that is still in the tree; never the root."""
        return not self.children and self.lock_ref == 0 and self.parent is not None
