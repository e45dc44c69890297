"""The order in which nodes of the radix tree are evicted.

Owns which of the evictable nodes goes first. Knows no matching and no insertion.
"""

import heapq

from chatserve.cache.radix_node import RadixNode

Entry = tuple[int, int, RadixNode]


class EvictionQueue:
    """Evictable nodes, least recently used first.

    A heap whose entries may be stale: an entry counts only while its node is evictable and has not
    been used since it was offered. So nothing is ever searched for or removed from the middle.

    Owns: the heap. Used from: the tree.
    """

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._num_offered = 0

    def offer(self, node: RadixNode, num_nodes: int) -> None:
        """Enter `node` if it may be evicted. `num_nodes` of the tree bounds the stale entries."""
        if not node.is_evictable:
            return
        self._num_offered += 1  # breaks ties, so that nodes are never compared
        heapq.heappush(self._heap, (node.last_access, self._num_offered, node))
        if len(self._heap) > 64 + 4 * num_nodes:
            live = {id(entry[2]): entry for entry in self._heap if _is_live(entry)}
            self._heap = list(live.values())
            heapq.heapify(self._heap)

    def pop(self) -> RadixNode | None:
        """Take out the node to evict next, or None if there is none."""
        while self._heap:
            entry = heapq.heappop(self._heap)
            if _is_live(entry):
                return entry[2]
        return None

    def nodes(self) -> set[int]:
        """Return the `id` of every node that `pop` could return. For tests and debugging."""
        return {id(entry[2]) for entry in self._heap if _is_live(entry)}


def _is_live(entry: Entry) -> bool:
    last_access, _, node = entry
    return node.is_evictable and node.last_access == last_access
