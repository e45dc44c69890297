"""The radix tree: token ids to pages.

Owns the nodes, their order of eviction and the clock that orders it. Decides nothing about requests
and counts no page references; `prefix_cache.py` does. Standard library only, no wall clock.

A node is one edge of the tree, a run of token ids with the pages that hold their KV. With pages of
four tokens, after the prompts `abcd efgh ij` and `abcd efgh klmn` and `abcd wx`:

    root ── abcd ──┬── efgh ──┬── ij··      a leaf may end inside a page (its tail)
                   │          └── klmn
                   └── wx··

Three moves change the shape:

    split_node at a page boundary      [A B C]        ->  [A] ── [B C]
        The lower half keeps the identity of the node, so that whoever holds it (a running
        request holds the deepest node of its prefix) still holds the whole path.
    extend a leaf that only its writer holds          [A] + B  ->  [A B]
    drop a tail that a new page begins with           ij·· then ijkl  ->  ijkl

Invariants, recounted by `check_invariants`:
  1. A node begins on a page boundary. It ends on one too, unless it is a leaf.
  2. Only a node's last page may be partly filled: `len(pages) == ceil(len(key) / page_size)`.
  3. Siblings differ in their first page. They may share up to `page_size - 1` leading tokens, so
     matching is exact on whole pages first, then takes the neighbour with the longest common
     prefix. Children are sorted by their first page: that neighbour stands next to the place
     where the page would be inserted, found by bisection however many children there are.
  4. `lock_ref` of a node is at least the sum of its children's; the root is never evicted.
  5. `evictable_pages + protected_pages` is the number of pages in the tree.
  6. Every unlocked leaf has a live entry in the eviction queue.

Rejected: children keyed by a hash of the page (a hash is never trusted, and says nothing about the
longest common prefix); one node per page (depth, and with it every lock, grows with the prompt).
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chatserve.cache.eviction_queue import EvictionQueue
from chatserve.cache.page_allocator import PageId
from chatserve.cache.radix_node import RadixNode


@dataclass(frozen=True, slots=True)
class Match:
    """The longest prefix the tree knows. Reading it changed nothing.

    `num_pages` whole pages lead to a place inside or at the end of `node` (`node_pages` of its
    pages belong to the match). If the next page of the tree begins with the tokens that follow,
    `partial_page` is that page and `partial_tokens` how many of them it holds.
    """

    node: RadixNode
    node_pages: int
    pages: tuple[PageId, ...]
    partial_page: PageId | None = None
    partial_tokens: int = 0

    def num_tokens(self, page_size: int) -> int:
        return len(self.pages) * page_size + self.partial_tokens

    def without_partial(self) -> "Match":
        return Match(self.node, self.node_pages, self.pages)


@dataclass(frozen=True, slots=True)
class Insertion:
    """What `insert` did: see there. `adopted` and `dropped` are for the reference counts."""

    node: RadixNode
    pages: list[PageId]
    adopted: list[PageId]
    dropped: list[PageId]


class RadixTree:
    """Token ids to pages, with locks and eviction.

    Owns: nodes and eviction order. Used from: the engine thread.
    """

    def __init__(self, page_size: int):
        self.page_size = page_size
        self.root = RadixNode(key=[], pages=[], parent=None)
        self.evictable_pages = 0
        self.protected_pages = 0
        self.num_nodes = 0
        self._clock = 0
        self._eviction = EvictionQueue()

    # ── Reading ──────────────────────────────────────────────────────────────────────────────

    def match_prefix(self, token_ids: list[int]) -> Match:
        """Return the longest known prefix of `token_ids`. Changes nothing, not even recency.

        1. Walk whole pages: the child whose first page equals the next page, as far as it agrees.
        2. Where no whole page agrees any more, take the page with the longest common prefix: the
           next one of the node we stopped in, or the best first page among the children.
        """
        node, taken, pages, position = self.root, 0, [], 0
        while taken == len(node.pages):
            child = self._child_with_first_page(node, token_ids, position)
            if child is None:
                break
            taken = self._common_pages(child, token_ids, position)
            pages += child.pages[:taken]
            position += taken * self.page_size
            node = child
        partial_page, partial_tokens = self._best_partial(node, taken, token_ids, position)
        return Match(node, taken, tuple(pages), partial_page, partial_tokens)

    def _child_with_first_page(
        self, node: RadixNode, token_ids: list[int], position: int
    ) -> RadixNode | None:
        page = tuple(token_ids[position : position + self.page_size])
        if len(page) < self.page_size:
            return None
        index = bisect_left(node.children, page, key=_first_page)
        if index < len(node.children) and node.children[index].first_page == page:
            return node.children[index]
        return None

    def _common_pages(self, node: RadixNode, token_ids: list[int], position: int) -> int:
        """Return how many whole pages of `node` agree with `token_ids` from `position` on."""
        size = self.page_size
        limit = min(len(node.key), len(token_ids) - position) // size
        if node.key[: limit * size] == token_ids[position : position + limit * size]:
            return limit
        low, high = 0, limit - 1  # the first `low` pages agree, the first `high + 1` do not
        while low < high:
            middle = (low + high + 1) // 2
            start, end = low * size, middle * size
            if node.key[start:end] == token_ids[position + start : position + end]:
                low = middle
            else:
                high = middle - 1
        return low

    def _best_partial(
        self, node: RadixNode, taken: int, token_ids: list[int], position: int
    ) -> tuple[PageId | None, int]:
        page = tuple(token_ids[position : position + self.page_size])
        if not page:
            return None, 0
        if taken < len(node.pages):
            start = taken * self.page_size
            rest = node.key[start : start + self.page_size]
            common = _common_length(page, rest)
            return (node.pages[taken], common) if common else (None, 0)
        best = self._neighbour(node, page)
        common = _common_length(page, best.first_page) if best else 0
        return (best.pages[0], common) if best and common else (None, 0)

    def _neighbour(self, node: RadixNode, page: tuple[int, ...]) -> RadixNode | None:
        """Return the child whose first page has the longest common prefix with `page`."""
        index = bisect_left(node.children, page, key=_first_page)
        beside = node.children[max(0, index - 1) : index + 1]
        return max(beside, key=lambda child: _common_length(page, child.first_page), default=None)

    # ── Writing ──────────────────────────────────────────────────────────────────────────────

    def split_at(self, match: Match) -> RadixNode:
        """Return a node that ends exactly where the whole pages of `match` end."""
        if match.node_pages in (0, len(match.node.pages)):
            assert match.node_pages or match.node is self.root, "an empty match is at the root"
            return match.node
        return self.split_node(match.node, match.node_pages)

    def split_node(self, node: RadixNode, num_pages: int) -> RadixNode:
        """Put the first `num_pages` pages of `node` into a new parent of it, and return that.

        The lower half keeps the node's identity; both halves have its `lock_ref`.
        """
        assert 0 < num_pages < len(node.pages), f"cannot split {len(node.pages)} at {num_pages}"
        parent, cut = node.parent, num_pages * self.page_size
        assert parent is not None
        upper = RadixNode(
            key=node.key[:cut],
            pages=node.pages[:num_pages],
            parent=parent,
            first_page=node.first_page,
            children=[node],
            lock_ref=node.lock_ref,
            last_access=node.last_access,
        )
        parent.children[self._index_of(node)] = upper
        node.key, node.pages, node.parent = node.key[cut:], node.pages[num_pages:], upper
        node.first_page = tuple(node.key[: self.page_size])
        self.num_nodes += 1
        return upper

    def insert(self, node: RadixNode, token_ids: list[int], pages: list[PageId]) -> Insertion:
        """Continue the path that ends at `node` with `token_ids`, whose KV is in `pages`.

        1. Follow what is there already; its pages are the survivors, the caller's are duplicates.
        2. If the rest is a tail that an existing page begins with, it is known: nothing to add.
        3. Drop the unlocked tail that the rest begins with, then append the rest: in place where
           only the caller holds the leaf, else as a new child.

        Returns the deepest node of the path, the pages that hold these tokens from now on, and
        whichever pages the tree took (they are among the caller's) or gave up.
        """
        assert len(pages) == -(-len(token_ids) // self.page_size), "one page per page of tokens"
        start, position = node, 0
        survivors: list[PageId] = []
        while child := self._child_with_first_page(node, token_ids, position):  # 1
            taken = self._common_pages(child, token_ids, position)
            if taken < len(child.pages):
                child = self.split_node(child, taken)
            survivors += child.pages
            position += taken * self.page_size
            node = child
        rest, rest_pages = token_ids[position:], pages[len(survivors) :]
        self._touch_path(node)
        known = self._neighbour(node, tuple(rest[: self.page_size])) if rest else None
        if not rest or (known and _is_tail_of(rest, known.first_page)):  # 2
            return Insertion(node, survivors, adopted=[], dropped=[])
        dropped = []
        if known and known.lock_ref == 0 and _is_tail_of(known.first_page, rest):  # 3
            dropped = self._remove_leaf(known)
        # A leaf may grow only under those who hold its end: nobody, or the caller alone.
        if not node.children and node.lock_ref == (node is start) and node is not self.root:
            self._extend(node, rest, rest_pages)
        else:
            node = self._add_child(node, rest, rest_pages)
        self._offer(node)
        return Insertion(node, survivors + rest_pages, adopted=rest_pages, dropped=dropped)

    def _extend(self, node: RadixNode, key: list[int], pages: list[PageId]) -> None:
        assert len(node.key) % self.page_size == 0, "only whole pages can be continued"
        node.key += key
        node.pages += pages
        self._count_pages(node, len(pages))

    def _add_child(self, parent: RadixNode, key: list[int], pages: list[PageId]) -> RadixNode:
        first_page = tuple(key[: self.page_size])
        child = RadixNode(key, pages, parent, first_page, last_access=self._clock)
        index = bisect_left(parent.children, first_page, key=_first_page)
        parent.children.insert(index, child)
        self.num_nodes += 1
        self._count_pages(child, len(pages))
        return child

    def _count_pages(self, node: RadixNode, count: int) -> None:
        if node.lock_ref:
            self.protected_pages += count
        else:
            self.evictable_pages += count

    # ── Locks and recency ────────────────────────────────────────────────────────────────────

    def inc_lock_ref(self, node: RadixNode) -> None:
        """Protect `node` and everything above it from eviction, and mark it as just used."""
        self._touch_path(node)
        step: RadixNode | None = node
        while step is not None and step is not self.root:
            if step.lock_ref == 0:
                self.evictable_pages -= len(step.pages)
                self.protected_pages += len(step.pages)
            step.lock_ref += 1
            step = step.parent

    def dec_lock_ref(self, node: RadixNode) -> None:
        """Take one protection back."""
        step: RadixNode | None = node
        while step is not None and step is not self.root:
            assert step.lock_ref > 0, "a node was unlocked more often than locked"
            step.lock_ref -= 1
            if step.lock_ref == 0:
                self.evictable_pages += len(step.pages)
                self.protected_pages -= len(step.pages)
                self._offer(step)
            step = step.parent

    def _touch_path(self, node: RadixNode) -> None:
        """Make the path the most recently used; a parent is never older than its children."""
        self._clock += 1
        step: RadixNode | None = node
        while step is not None and step is not self.root:
            step.last_access = self._clock
            self._offer(step)
            step = step.parent

    # ── Eviction ─────────────────────────────────────────────────────────────────────────────

    def evict(self, num_pages: int) -> list[PageId]:
        """Remove up to `num_pages` pages of unlocked leaves, least recently used first.

        A leaf loses pages from its end, no more than needed. O(k log n) for k leaves of n.
        """
        evicted: list[PageId] = []
        while len(evicted) < num_pages and (node := self._eviction.pop()) is not None:
            wanted = num_pages - len(evicted)
            if wanted < len(node.pages):
                evicted += self._cut_leaf(node, wanted)
            else:
                evicted += self._remove_leaf(node)
        return evicted

    def _offer(self, node: RadixNode) -> None:
        self._eviction.offer(node, self.num_nodes)

    def _cut_leaf(self, node: RadixNode, num_pages: int) -> list[PageId]:
        keep = len(node.pages) - num_pages
        cut = node.pages[keep:]
        del node.pages[keep:]
        del node.key[keep * self.page_size :]
        self.evictable_pages -= num_pages
        self._offer(node)
        return cut[::-1]

    def _remove_leaf(self, node: RadixNode) -> list[PageId]:
        parent = node.parent
        assert parent is not None, "the root cannot be removed"
        assert node.is_evictable, "only an unlocked leaf can be removed"
        del parent.children[self._index_of(node)]
        node.parent = None
        self.num_nodes -= 1
        self.evictable_pages -= len(node.pages)
        self._offer(parent)
        return node.pages

    def _index_of(self, node: RadixNode) -> int:
        assert node.parent is not None
        index = bisect_left(node.parent.children, node.first_page, key=_first_page)
        assert node.parent.children[index] is node, "a node is not where its first page belongs"
        return index

    # ── For tests and debugging ──────────────────────────────────────────────────────────────

    def nodes(self) -> Iterator[RadixNode]:
        """Walk every node but the root, parents first."""
        stack = list(self.root.children)
        while stack:
            node = stack.pop()
            yield node
            stack += node.children

    def check_invariants(self) -> None:
        """Recount the invariants of the module docstring. Exact and expensive."""
        evictable = protected = count = 0
        queued = self._eviction.nodes()
        for node in self.nodes():
            count += 1
            assert node.key, "a node has no tokens"
            assert len(node.pages) == -(-len(node.key) // self.page_size), self.render()  # 2
            assert not node.children or len(node.key) % self.page_size == 0, self.render()  # 1
            assert node.first_page == tuple(node.key[: self.page_size])
            pages = [child.first_page for child in node.children]
            assert pages == sorted(set(pages)), self.render()  # 3
            assert node.lock_ref >= sum(child.lock_ref for child in node.children)  # 4
            assert all(child.parent is node for child in node.children)
            evictable += len(node.pages) if node.lock_ref == 0 else 0
            protected += len(node.pages) if node.lock_ref else 0
            assert not node.is_evictable or id(node) in queued, self.render()  # 6
        assert (evictable, protected) == (self.evictable_pages, self.protected_pages)  # 5
        assert count == self.num_nodes

    def render(self) -> str:
        """Draw the tree, one node a line: tokens, pages, locks."""
        lines: list[str] = []
        stack = [(child, 0) for child in reversed(self.root.children)]
        while stack:
            node, depth = stack.pop()
            lines.append(f"{'  ' * depth}{node.key} pages={node.pages} lock_ref={node.lock_ref}")
            stack += [(child, depth + 1) for child in reversed(node.children)]
        return "\n".join(lines)


def _first_page(node: RadixNode) -> tuple[int, ...]:
    return node.first_page


def _common_length(a: Sequence[int], b: Sequence[int]) -> int:
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return index
    return min(len(a), len(b))


def _is_tail_of(tail: Sequence[int], page: Sequence[int]) -> bool:
    """Tell whether `tail` is known already by whoever knows `page`."""
    return len(tail) <= len(page) and tuple(page[: len(tail)]) == tuple(tail)
