"""The order in which nodes of the radix tree expire.

Owns the question whose time is up. Knows neither locks nor what expiry does to a node.
"""

import heapq

from chatserve.cache.radix_node import RadixNode

Entry = tuple[float, int, RadixNode]


class ExpiryQueue:
    """Nodes with a time to live, the one that expires first in front.

    A heap with one entry for each node. Using a node moves nothing; an entry that comes up too
    early is put back at the time that holds now, so the cost is one push per time to live.

    Owns: the heap. Used from: the tree.
    """

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._num_offered = 0

    def offer(self, node: RadixNode) -> None:
        """Enter a node; one that never expires is not entered."""
        if node.expires_s != float("inf"):
            self._num_offered += 1  # breaks ties, so that nodes are never compared
            heapq.heappush(self._heap, (node.expires_s, self._num_offered, node))

    def pop_due(self, now_s: float) -> RadixNode | None:
        """Take out a node whose time is up, or None if there is none."""
        while self._heap and self._heap[0][0] <= now_s:
            _, _, node = heapq.heappop(self._heap)
            if node.parent is None or node.is_detached:
                continue
            if node.expires_s <= now_s:
                return node
            self.offer(node)
        return None

    def nodes(self) -> set[int]:
        """Return the `id` of every node that is entered. For tests and debugging."""
        return {id(node) for _, _, node in self._heap}
