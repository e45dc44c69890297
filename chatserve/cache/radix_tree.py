"""The radix tree: token ids to pages.

Owns the nodes, their locks and the clocks that order eviction and expiry. Decides nothing about
requests and counts no page references; `prefix_cache.py` does. Standard library only, no wall
clock: the time comes with `expire` and `advance`.

A node is one edge of the tree, a run of token ids of one scope with the pages that hold their KV.
With pages of four tokens, after the prompts `abcd efgh ij` and `abcd efgh klmn` and `abcd wx`:

    root ── abcd ──┬── efgh ──┬── ij··      a leaf may end inside a page (its tail)
                   │          └── klmn
                   └── wx··

Four moves change the shape:

    split_node at a page boundary      [A B C]        ->  [A] ── [B C]
        The lower half keeps the identity of the node, so that whoever holds it (a running
        request holds the deepest node of its prefix) still holds the whole path.
    extend a leaf that only its writer holds          [A] + B  ->  [A B]
    drop a tail that a new page begins with           ij·· then ijkl  ->  ijkl
    detach a subtree that may not be found any more
        What nobody holds goes at once. The rest hangs below its parent unseen, and goes when the
        last request that holds it lets go:

            root ── A ──┬── B (held) ── C          root ── A          B (held)
                        └── D                                └── D    (its parent is still A)

Invariants, recounted by `check_tree`:
  1. A node begins on a page boundary. It ends on one too, unless it is a leaf.
  2. Only a node's last page may be partly filled: `len(pages) == ceil(len(key) / page_size)`.
  3. Siblings differ in scope or first page, and are sorted by both. Siblings of one scope may share
     up to `page_size - 1` leading tokens.
  4. A scope has only itself and narrower ones below it: public, then a tenant, then its users.
  5. `lock_ref` of a node is at least the sum of its children's; the root is never evicted.
  6. `evictable_pages + protected_pages` is the number of pages in the tree, detached ones included.
  7. Every unlocked leaf has a live entry in the eviction queue, every node that can expire one in
     the expiry queue.
  8. A detached node is locked: without a holder it is gone.

Rejected: children keyed by a hash of the page (a hash is never trusted, and says nothing about the
longest common prefix); one node per page (depth, and with it every lock, grows with the prompt);
one tree per scope (the public prefix would have to be found in two trees and locked in both).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chatserve.cache.children import Edge
from chatserve.cache.eviction_queue import EvictionQueue
from chatserve.cache.expiry_queue import ExpiryQueue
from chatserve.cache.page_allocator import PageId
from chatserve.cache.radix_match import Match, common_pages, match_prefix
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.scope import ScopePath, Span
from chatserve.prefix_digest import HASH_BYTES


@dataclass(frozen=True, slots=True)
class Insertion:
    """What `insert` did: see there. `adopted` and `dropped` are for the reference counts."""

    node: RadixNode
    pages: list[PageId]
    adopted: list[PageId]
    dropped: list[PageId]


class RadixTree:
    """Token ids to pages, with locks, eviction and expiry.

    Owns: nodes and their orders. Used from: the engine thread.
    """

    def __init__(self, page_size: int, eviction: EvictionQueue | None = None):
        self.page_size = page_size
        self.root = RadixNode(key=[], pages=[], parent=None, last_access=-1)  # never the last used
        self.evictable_pages = 0
        self.protected_pages = 0
        self.num_nodes = 0
        self.detached: set[RadixNode] = set()  # the tops of detached subtrees
        self._clock = 0
        self._now_s = 0.0
        self._eviction = eviction or EvictionQueue()
        self._expiry = ExpiryQueue()

    def match_prefix(self, token_ids: list[int], scopes: ScopePath) -> Match:
        """Return the longest known prefix of `token_ids` that is open to `scopes`."""
        return match_prefix(self.root, token_ids, scopes, self.page_size)

    # ── Writing ──────────────────────────────────────────────────────────────────────────────

    def split_at(self, match: Match) -> RadixNode:
        """Return a node that ends exactly where the whole pages of `match` end."""
        if match.node_pages in (0, len(match.node.pages)):
            assert match.node_pages or match.node is self.root, "an empty match is at the root"
            return match.node
        return self.split_node(match.node, match.node_pages)

    def split_node(self, node: RadixNode, num_pages: int) -> RadixNode:
        """Put the first `num_pages` pages of `node` into a new parent of it, and return that.

        The lower half keeps the node's identity; both halves have its locks and its retention.
        """
        assert 0 < num_pages < len(node.pages), f"cannot split {len(node.pages)} at {num_pages}"
        parent, cut = node.parent, num_pages * self.page_size
        assert parent is not None
        upper = node.upper_half(num_pages, self.page_size)
        parent.children.replace(node, upper)
        node.key, node.pages, node.parent = node.key[cut:], node.pages[num_pages:], upper
        node.prefix_hashes = node.prefix_hashes[num_pages * HASH_BYTES :]
        node.edge = Edge(node.scope, tuple(node.key[: self.page_size]))
        upper.children.add(node)
        self.num_nodes += 1
        self._expiry.offer(upper)
        return upper

    def insert(
        self,
        node: RadixNode,
        token_ids: list[int],
        pages: list[PageId],
        span: Span,
        *,
        keeps_tail: bool = False,
    ) -> Insertion:
        """Continue the path that ends at `node` with `token_ids`, whose KV is in `pages`.

        1. Follow what is there already; its pages are the survivors, the caller's are duplicates.
        2. If the rest is a tail that an existing page begins with, it is known: nothing to add,
           unless the tail is to be kept for itself.
        3. Drop the unlocked tail that the rest begins with, then append the rest: in place where
           only the caller holds the leaf, else as a new child.

        Returns the deepest node of the path, the pages that hold these tokens from now on, and
        whichever pages the tree took (they are among the caller's) or gave up.
        """
        assert len(pages) == -(-len(token_ids) // self.page_size), "one page per page of tokens"
        start = node
        node, survivors = self._follow(node, token_ids, span)  # 1
        rest = token_ids[len(survivors) * self.page_size :]
        rest_pages = pages[len(survivors) :]
        edge = Edge(span.scope, tuple(rest[: self.page_size]))
        self._touch_path(node)
        known = node.children.neighbour(edge) if rest else None
        if known and known.edge == edge:
            self._retain_longer(known, span)
            return Insertion(known, survivors + known.pages[:1], adopted=[], dropped=[])
        is_known = known is not None and _is_tail_of(rest, known.edge.first_page)
        if not rest or (is_known and not keeps_tail):  # 2
            return Insertion(node, survivors, adopted=[], dropped=[])
        dropped = []
        if known and known.lock_ref == 0 and _is_tail_of(known.edge.first_page, rest):  # 3
            dropped = self._remove_leaf(known)
        if self._may_extend(node, span, is_held_by_caller=node is start):
            self._extend(node, rest, rest_pages)
        else:
            node = self._add_child(node, rest, rest_pages, span)
        self._eviction.offer(node, self.num_nodes)
        return Insertion(node, survivors + rest_pages, adopted=rest_pages, dropped=dropped)

    def _follow(
        self, node: RadixNode, token_ids: list[int], span: Span
    ) -> tuple[RadixNode, list[PageId]]:
        """Walk whole pages of one span; split where they leave a node."""
        size, position = self.page_size, 0
        survivors: list[PageId] = []
        while page := tuple(token_ids[position : position + size]):
            child = node.children.get(Edge(span.scope, page)) if len(page) == size else None
            if child is None:
                break
            taken = common_pages(child, token_ids, position, len(token_ids), size)
            node = self.split_node(child, taken) if taken < len(child.pages) else child
            self._retain_longer(node, span)
            survivors += node.pages
            position += taken * size
        return node, survivors

    def _retain_longer(self, node: RadixNode, span: Span) -> None:
        if span.retention > node.retention:
            node.retention = span.retention
            self._eviction.offer(node, self.num_nodes)
            self._expiry.offer(node)

    def _may_extend(self, node: RadixNode, span: Span, *, is_held_by_caller: bool) -> bool:
        """Tell whether a leaf may grow: only under those who hold its end, nobody or the caller."""
        return (
            not node.children
            and node.lock_ref == is_held_by_caller
            and node is not self.root
            and (node.scope, node.retention) == (span.scope, span.retention)
        )

    def _extend(self, node: RadixNode, key: list[int], pages: list[PageId]) -> None:
        assert len(node.key) % self.page_size == 0, "only whole pages can be continued"
        node.key += key
        node.pages += pages
        self._count_pages(node, len(pages))

    def _add_child(
        self, parent: RadixNode, key: list[int], pages: list[PageId], span: Span
    ) -> RadixNode:
        edge = Edge(span.scope, tuple(key[: self.page_size]))
        child = RadixNode(key, pages, parent, edge, span.retention)
        child.last_access, child.last_use_s = self._clock, self._now_s
        parent.children.add(child)
        self.num_nodes += 1
        self._count_pages(child, len(pages))
        self._expiry.offer(child)
        return child

    def _count_pages(self, node: RadixNode, count: int) -> None:
        if node.lock_ref:
            self.protected_pages += count
        else:
            self.evictable_pages += count

    # ── Locks and recency ────────────────────────────────────────────────────────────────────

    def advance(self, now_s: float) -> None:
        """Say what time it is; what is used from now on is used at this time."""
        self._now_s = now_s

    def inc_lock_ref(self, node: RadixNode) -> None:
        """Protect `node` and everything above it from eviction, and mark it as just used."""
        assert not node.is_detached, "a detached node cannot be found, so nobody can lock it"
        self._touch_path(node)
        for step in self.path_to(node):
            if step.lock_ref == 0:
                self.evictable_pages -= len(step.pages)
                self.protected_pages += len(step.pages)
            step.lock_ref += 1

    def dec_lock_ref(self, node: RadixNode) -> list[PageId]:
        """Take one protection back; return the pages of detached nodes that this set free."""
        dropped: list[PageId] = []
        for step in self.path_to(node):
            assert step.lock_ref > 0, "a node was unlocked more often than locked"
            step.lock_ref -= 1
            if step.lock_ref == 0:
                step.last_use_s = self._now_s
                self.evictable_pages += len(step.pages)
                self.protected_pages -= len(step.pages)
                if step.is_detached:
                    dropped += self._remove_leaf(step)
                else:
                    self._eviction.offer(step, self.num_nodes)
        return dropped

    def record_reuse(self, node: RadixNode) -> None:
        """Say that a request was admitted that starts from what ends at `node`."""
        self._eviction.record_reuse(node)

    def retain_found(self, node: RadixNode, match: Match, scopes: ScopePath) -> None:
        """Keep what `match` found, up to `node`, as long as whoever found it would keep it.

        A tail is in use when all of it was copied; of any other page it would matter which of
        several alike was taken.
        """
        end = 0
        for step in reversed(self.path_to(node)):
            end += len(step.key)
            self._retain_longer(step, scopes.span_at(end - 1))
        if match.tail is not None:
            self._retain_longer(match.tail, scopes.span_at(end + match.partial_tokens - 1))
            self._touch_path(match.tail)

    def _touch_path(self, node: RadixNode) -> None:
        """Make the path the most recently used; a parent is never older than its children."""
        # Used twice in a row is used once: the clock stands, and the node keeps its place in line.
        if node.last_access != self._clock:
            self._clock += 1
        for step in self.path_to(node):
            step.last_access, step.last_use_s = self._clock, self._now_s
            self._eviction.offer(step, self.num_nodes)

    def path_to(self, node: RadixNode) -> list[RadixNode]:
        """Return the nodes from `node` up to the root, which is not among them."""
        path: list[RadixNode] = []
        while node.parent is not None:
            path.append(node)
            node = node.parent
        return path

    # ── Going ────────────────────────────────────────────────────────────────────────────────

    def evict(self, num_pages: int) -> list[PageId]:
        """Remove up to `num_pages` pages of unlocked leaves, in the order of the eviction queue.

        A leaf loses pages from its end, no more than needed. O(k log n) for k leaves of n.
        """
        evicted: list[PageId] = []
        while len(evicted) < num_pages and (node := self._eviction.pop()) is not None:
            wanted = num_pages - len(evicted)
            if wanted < len(node.pages):
                evicted += self._cut_leaf(node, wanted)
            else:
                self._eviction.record_loss(node)
                evicted += self._unlink(node)
        return evicted

    def expire(self, now_s: float) -> list[PageId]:
        """Detach what was not used for longer than its time to live; return what is free of it.

        What builds on an expired node was not used since either, and goes with it.
        """
        self.advance(now_s)
        dropped: list[PageId] = []
        held: list[RadixNode] = []
        while (node := self._expiry.pop_due(now_s)) is not None:
            if node.lock_ref:
                held.append(node)
            else:
                dropped += self.detach(node)
        for node in held:  # In use is used now. Offered last, or a ttl of 0 would come up again.
            node.last_use_s = now_s
            self._expiry.offer(node)
        return dropped

    def detach(self, top: RadixNode) -> list[PageId]:
        """Let nobody find `top` and what is below it any more; return the pages nobody holds."""
        parent = top.parent
        assert parent is not None, "the root cannot be detached"
        assert not top.is_detached, "a detached node cannot be found, so nobody can detach it"
        dropped: list[PageId] = []
        below = [top, *self._below(top)]
        for node in reversed(below):
            node.is_detached = True
            if node.lock_ref == 0 and node is not top:
                dropped += self._remove_leaf(node)
        parent.children.remove(top)
        self.detached.add(top)
        if top.lock_ref == 0:
            dropped += self._remove_leaf(top)
        self._eviction.offer(parent, self.num_nodes)
        return dropped

    def _cut_leaf(self, node: RadixNode, num_pages: int) -> list[PageId]:
        keep = len(node.pages) - num_pages
        cut = node.truncate(keep, self.page_size)
        self.evictable_pages -= num_pages
        self._eviction.offer(node, self.num_nodes)
        return cut[::-1]

    def _remove_leaf(self, node: RadixNode) -> list[PageId]:
        assert node.is_evictable, "only an unlocked leaf can be removed"
        return self._unlink(node)

    def _unlink(self, node: RadixNode) -> list[PageId]:
        parent = node.parent
        assert parent is not None, "the root cannot be removed"
        if node.is_detached and node in self.detached:
            self.detached.remove(node)
        else:
            parent.children.remove(node)
        node.parent = None
        self.num_nodes -= 1
        self.evictable_pages -= len(node.pages)
        if not parent.is_detached and not parent.children:
            self._eviction.offer(parent, self.num_nodes)
        return node.pages

    # ── For tests and debugging ──────────────────────────────────────────────────────────────

    def queued_for_eviction(self) -> set[int]:
        """Return the `id` of every node that `evict` could take."""
        return self._eviction.nodes()

    def queued_for_expiry(self) -> set[int]:
        """Return the `id` of every node that `expire` could take in time."""
        return self._expiry.nodes()

    def nodes(self) -> Iterator[RadixNode]:
        """Walk every node but the root, detached ones too, parents first."""
        yield from self._below(self.root)
        for top in self.detached:
            yield from (top, *self._below(top))

    def _below(self, top: RadixNode) -> Iterator[RadixNode]:
        stack = list(top.children)
        while stack:
            node = stack.pop()
            yield node
            stack += node.children


def _is_tail_of(tail: Sequence[int], page: Sequence[int]) -> bool:
    """Tell whether `tail` is known already by whoever knows `page`."""
    return len(tail) <= len(page) and tuple(page[: len(tail)]) == tuple(tail)
