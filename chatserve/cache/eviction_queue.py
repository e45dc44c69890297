"""The order in which nodes of the radix tree are evicted.

Owns which of the evictable nodes goes first. Knows no matching, no insertion and no token: only the
shape of the tree and the order of its uses count, so nobody's tokens change what others find.

Every page costs about the same to compute again. So what a page is worth is the chance that it is
needed again, and a node is kept the longer after its last use, the higher that chance is. How long
is its *stay*, in lifetimes; one lifetime is what evicted nodes went unused for, on average:

    node                                                     stay
    a prompt that several shared: two children are gone      2
    a path that a request has continued                      1
    a path that none has continued so far                    1/8 to 1: the chance that one will, by
                                                             what became of its siblings, over the
                                                             chance of a path that was continued

    first to go: lowest priority, then least `last_access + (stay - 1) * lifetime`

With a clock at 1,000 and a lifetime of 100: a tenant's prompt, unused since 850, counts as 950. A
session of two turns, unused since 880, counts as 880. A document that came at 930, behind a prompt
under which twelve others were evicted unread, has a chance of 4/16; if sessions go on with 3/4, its
stay is 1/3, it counts as 863 and goes first. So a stream of prompts that come once displaces mostly
itself. Where all stays are 1, this is the order of least recent use.

That worth is added to a clock is GreedyDual's idea (Young 1994; Cao and Irani 1997): a key stays
right while time passes, and a heap is enough. What a tree adds: a leaf goes page by page from its
end and is offered again with what is left; a parent is offered when its last child has gone, and
what became of its children is known.

Rejected, by measurement on the traces of `benchmarks/eviction`: the number of uses as a factor
(GreedyDual-Size-Frequency, Cherkasova 1998), since long sessions that have ended stay too long,
which finds less than least recent use does; depth as a factor, for attention to all that came
before, which found less and saved no more work.
"""

import heapq
from collections.abc import Callable

from chatserve.cache.radix_node import RadixNode

Entry = tuple[int, float, int, int, RadixNode]
Stay = Callable[[RadixNode, float], float]

SHARED_STAY = 2.0
MIN_STAY = 1 / 8
ASSUMED_REUSED = 4  # as if so many siblings had been continued: what is new gets its chance
LIFETIME_GAIN = 1 / 20
CHANCE_GAIN = 1 / 100


def expected_stay(node: RadixNode, chance: float) -> float:
    """Return how many lifetimes a leaf is to be kept after its last use.

    `chance` is that of a path which was continued to be so again before it is evicted.
    """
    if node.was_shared:
        return SHARED_STAY
    if node.was_reused or node.parent is None:
        return 1.0
    reused = node.parent.num_reused_children + ASSUMED_REUSED
    chance_here = reused / (reused + node.parent.num_lost_children)
    return max(MIN_STAY, chance_here / chance) if chance_here < chance else 1.0


class EvictionQueue:
    """Evictable nodes, the one that is worth least in front.

    A heap with at most one entry for each node. Using a node moves nothing: an entry that comes up
    is put back if its node was used since, and dropped if it cannot be evicted now (it is offered
    again when it can). So nothing is ever searched for, and a node in constant use is moved once.

    Owns: the heap, and what it learns from reuse and eviction. Used from: the tree.
    """

    def __init__(self, stay: Stay = expected_stay) -> None:
        self._stay = stay
        self._heap: list[Entry] = []
        self._num_pushed = 0
        self._last_access = 0
        self._lifetime = 0.0
        self._chance = 0.5

    def record_reuse(self, node: RadixNode) -> None:
        """Say that a request was admitted that starts from what ends at `node`."""
        if node.parent is None:
            return
        if not node.was_reused:
            node.was_reused = True
            node.parent.num_reused_children += 1
        elif not node.was_shared:
            self._chance += CHANCE_GAIN * (1 - self._chance)

    def record_loss(self, node: RadixNode) -> None:
        """Say that all of `node` is evicted. It is in the tree still."""
        assert node.parent is not None, "the root is never evicted"
        if not node.was_reused:
            node.parent.num_lost_children += 1
        elif not node.was_shared:
            self._chance -= CHANCE_GAIN * self._chance

    def offer(self, node: RadixNode, num_nodes: int) -> None:
        """Enter `node` if it may be evicted. `num_nodes` of the tree bounds what is left behind."""
        self._last_access = max(self._last_access, node.last_access)
        if not node.is_evictable or node.is_queued:
            return
        self._push(node)
        if len(self._heap) > 64 + 4 * num_nodes:
            self._heap = [entry for entry in self._heap if entry[-1].parent is not None]
            heapq.heapify(self._heap)

    def _push(self, node: RadixNode) -> None:
        value = node.last_access + (self._stay(node, self._chance) - 1) * self._lifetime
        self._num_pushed += 1  # breaks ties, so that nodes are never compared
        entry = (node.retention.priority, value, self._num_pushed, node.last_access, node)
        heapq.heappush(self._heap, entry)
        node.is_queued = True

    def pop(self) -> RadixNode | None:
        """Take out the node to evict next, or None if there is none."""
        while self._heap:
            priority, value, _, last_access, node = heapq.heappop(self._heap)
            node.is_queued = False
            if not node.is_evictable:
                continue
            if node.last_access != last_access or node.retention.priority != priority:
                self._push(node)
                continue
            if priority == 0:  # what priority has kept says nothing about the others' lifetime
                unused = max(0.0, self._last_access - value)
                self._lifetime += LIFETIME_GAIN * (unused - self._lifetime)
            return node
        return None

    def nodes(self) -> set[int]:
        """Return the `id` of every node that `pop` could return. For tests and debugging."""
        return {id(entry[-1]) for entry in self._heap if entry[-1].is_evictable}
