"""The prefix cache: radix tree and page allocator as the scheduler sees them.

Owns the rule of copy-on-write and the life of a request's pages. Knows neither requests nor
tensors; a request's part is a `HeldPages`, and copies are handed out as `PageCopy` records for
whoever owns the tensors. Standard library only.

Who holds which tokens of a request, from left to right (page size 4, `num_computed` = 14):

    tokens       0123 4567 89ab cd··
    page_ids     p0   p1   p2   p3
                 └────────┘ │    │
                 in the tree, the path to `node` is locked; never written again
                            └ full, given to the tree by the next `commit`
                                 └ private: the only page this request may write

    try_admit    whole pages of the match are held by reference; where the match ends inside a page,
                 the request gets a private copy of it (PageCopy) and goes on writing there
    commit       full pages enter the tree; if somebody else computed the same page first, the
                 request takes that one and gives its own back: one copy of each page survives
    retire       what was computed enters the tree, the partly filled page too, then all is let go
    pin          the same, and the path stays locked under a name
    release      all is let go, nothing enters the tree

Invariants:
  1. The holders of a page are the tree and each request whose `page_ids` names it.
  2. A page that two holders can see is never written: a request writes only at or behind
     `num_computed`, and those pages are private (`assert_writable`).
  3. The first `num_tree_pages` of a request's pages are exactly the pages of the path to `node`.
  4. A failed `try_admit` or `try_grow` changes nothing but recency, and what was evicted for it.
  5. Pinned pages leave room for one request of the longest context (`PinLimits`), so that whatever
     was not refused can run once nothing else does.

Rejected: copying when a write is about to happen (the scheduler would have to ask for every token;
the match already knows the only page where it can happen); holding the source of a copy until it
has run (which of two equally good sources is taken depends on a tenant's tokens, and would then
decide whose pages are evicted).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatserve.cache.eviction_queue import EvictionQueue
from chatserve.cache.node_use import forget_tenant, record_computed, record_hit
from chatserve.cache.page_allocator import PageAllocator, PageId
from chatserve.cache.pins import PinLimits, Pins, PrefixName, Shortfall
from chatserve.cache.radix_check import check_tree
from chatserve.cache.radix_match import Match
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.radix_tree import Insertion, RadixTree
from chatserve.cache.scope import PUBLIC, SHARED_BY_ALL, Scope, ScopePath, Span


@dataclass(frozen=True, slots=True)
class PageCopy:
    """Copy the first `num_tokens` tokens' KV of one page to another before this step's forward.

    Nobody holds the source for it. It may be evicted and given out again within the same step, so
    all sources of a step are read before any destination is written, and before the forward pass.
    """

    source: PageId
    destination: PageId
    num_tokens: int


@dataclass(slots=True)
class HeldPages:
    """The pages of one request. Mutable; changed by the cache only.

    `copied` is the page that was copied on write for it, while it holds that.
    """

    page_ids: list[PageId]
    node: RadixNode
    num_tree_pages: int
    scopes: ScopePath
    copied: PageId | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What `try_admit` gave: pages, how many leading tokens need no computation, and the copy."""

    held: HeldPages
    num_cached_tokens: int
    copy: PageCopy | None


class PrefixCache:
    """Gives pages to requests, remembers what they computed, and finds it again.

    Owns: the radix tree, the page allocator and the pins. Used from: the engine thread.
    """

    def __init__(
        self,
        num_pages: int,
        page_size: int,
        *,
        enabled: bool = True,
        pin_limits: PinLimits | None = None,
        eviction: EvictionQueue | None = None,
    ):
        self.page_size = page_size
        self.enabled = enabled
        self.allocator = PageAllocator(num_pages)
        self.tree = RadixTree(page_size, eviction)
        self.pins = Pins(self.tree, pin_limits or PinLimits(0, 0))

    @property
    def num_available_pages(self) -> int:
        """Pages that could be given out now: free, or evictable."""
        return self.allocator.num_free + self.tree.evictable_pages

    def pages_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.page_size)

    def expire(self, now_s: float) -> None:
        """Forget what was unused for longer than its time to live. Call it once a step."""
        self.allocator.disown(self.tree.expire(now_s))

    def match_prefix(self, token_ids: list[int], scopes: ScopePath = SHARED_BY_ALL) -> Match:
        """Return what is known of `token_ids` short of the last one. Changes nothing.

        The last token is always computed anew: its logits are needed.
        """
        return self.tree.match_prefix(token_ids[:-1] if self.enabled else [], scopes)

    def try_admit(
        self, match: Match, num_tokens: int, scopes: ScopePath = SHARED_BY_ALL
    ) -> Admission | None:
        """Return pages for the first `num_tokens` tokens of a request, or None.

        `match` is spent by this: the tree may be split where it ends. Lock, then allocate:
        allocation evicts, and must not evict the pages that the match found.
        """
        node = self.tree.split_at(match)
        self.tree.inc_lock_ref(node)
        self.allocator.retain(match.pages)
        new_pages = self._try_allocate(self.pages_for(num_tokens) - len(match.pages))
        if new_pages is None:
            self.allocator.release(match.pages)
            self._unlock(node)
            return None
        self.tree.record_reuse(node)
        self.tree.retain_found(node, match, scopes)
        tail = [match.tail] if match.tail is not None else []
        record_hit([*self.tree.path_to(node), *tail], scopes.owner)
        copy = None
        if match.partial_page is not None:
            copy = PageCopy(match.partial_page, new_pages[0], match.partial_tokens)
        copied = copy.destination if copy is not None else None
        held = HeldPages([*match.pages, *new_pages], node, len(match.pages), scopes, copied)
        return Admission(held, match.num_tokens(self.page_size), copy)

    def try_grow(self, held: HeldPages, num_tokens: int) -> bool:
        """Make room for `num_tokens` tokens in all; False if there are no pages for it."""
        new_pages = self._try_allocate(self.pages_for(num_tokens) - len(held.page_ids))
        if new_pages is None:
            return False
        held.page_ids += new_pages
        return True

    def _try_allocate(self, count: int) -> list[PageId] | None:
        if count <= 0:
            return []
        if count > self.num_available_pages:
            return None
        self.allocator.disown(self.tree.evict(count - self.allocator.num_free))
        return self.allocator.try_allocate(count)

    def commit(self, held: HeldPages, token_ids: list[int], num_computed: int) -> None:
        """Give the tree the full pages among the first `num_computed` tokens.

        Nothing enters below a node that may not be found any more.
        """
        size, full = self.page_size, num_computed // self.page_size
        if not self.enabled or full <= held.num_tree_pages or held.node.is_detached:
            return
        for span, end in held.scopes.page_runs(held.num_tree_pages, full, size):
            first = held.num_tree_pages
            tokens = token_ids[first * size : end * size]
            insertion = self._insert(held, tokens, held.page_ids[first:end], span)
            self._remap(held, first, insertion.pages)
            held.num_tree_pages = end

    def _insert(
        self,
        held: HeldPages,
        tokens: list[int],
        pages: list[PageId],
        span: Span,
        *,
        keeps_tail: bool = False,
    ) -> Insertion:
        insertion = self.tree.insert(held.node, tokens, pages, span, keeps_tail=keeps_tail)
        self.allocator.adopt(insertion.adopted)
        self.allocator.disown(insertion.dropped)
        grown = insertion.node if insertion.adopted else None
        record_computed(self.tree.path_to(insertion.node), held.scopes.owner, grown)
        if insertion.node is not held.node:
            self.tree.inc_lock_ref(insertion.node)
            self._unlock(held.node)
            held.node = insertion.node
        return insertion

    def _remap(self, held: HeldPages, first: int, survivors: Sequence[PageId]) -> None:
        """Replace the request's pages from `first` on by the tree's; nothing is freed before."""
        ours = held.page_ids[first : first + len(survivors)]
        self.allocator.retain(survivors)
        held.page_ids[first : first + len(survivors)] = survivors
        if held.copied in ours and held.copied not in survivors:
            held.copied = None
        self.allocator.release(ours)

    def retire(self, held: HeldPages, token_ids: list[int], num_computed: int) -> None:
        """Remember the first `num_computed` tokens, also in a partly filled page; let all go."""
        self._remember(held, token_ids, num_computed)
        self.release(held)

    def _remember(
        self, held: HeldPages, token_ids: list[int], num_computed: int, *, keeps_tail: bool = False
    ) -> None:
        self.commit(held, token_ids, num_computed)
        full = num_computed // self.page_size
        tail = token_ids[full * self.page_size : num_computed]
        if self.enabled and tail and not held.node.is_detached:
            span = held.scopes.span_at(num_computed - 1)
            self._insert(held, tail, [held.page_ids[full]], span, keeps_tail=keeps_tail)

    def release(self, held: HeldPages) -> None:
        """Let all pages go. Idempotent."""
        self._unlock(held.node)
        self.allocator.release(held.page_ids)
        held.page_ids, held.node, held.num_tree_pages = [], self.tree.root, 0
        held.copied = None

    def _unlock(self, node: RadixNode) -> None:
        self.allocator.disown(self.tree.dec_lock_ref(node))

    def assert_writable(self, held: HeldPages, start: int, end: int) -> None:
        """Crash if the tokens from `start` to `end` would be written where others can see it."""
        for index in range(start // self.page_size, self.pages_for(end)):
            page_id = held.page_ids[index]
            assert not self.allocator.is_shared(page_id), f"page {page_id} is shared, not writable"

    # ── Pins, and what is to be forgotten ────────────────────────────────────────────────────

    def pin_shortfall(
        self, token_ids: list[int], scopes: ScopePath, tenant: str
    ) -> Shortfall | None:
        """Return which limit keeps a prefix from being pinned, or None."""
        match = self.tree.match_prefix(token_ids if self.enabled else [], scopes)
        return self.pins.shortfall(match, len(token_ids), scopes, tenant)

    def pin(self, name: PrefixName, held: HeldPages, token_ids: list[int]) -> Shortfall | None:
        """Retire a request that has computed all of `token_ids` and keep them under `name`.

        Returns which limit is in the way, if one is; what was computed is then kept as anything is.
        """
        assert self.enabled, "without a prefix cache there is nothing to pin"
        shortfall = self.pin_shortfall(token_ids, held.scopes, name.tenant)
        self._remember(held, token_ids, len(token_ids), keeps_tail=shortfall is None)
        if shortfall is None:
            self.pins.hold(name, held.node)
        self.release(held)
        return shortfall

    def unpin(self, name: PrefixName) -> None:
        """Let a pinned prefix be evicted like any other. Idempotent."""
        self.allocator.disown(self.pins.let_go(name))

    def drop_prefix(self, name: PrefixName, token_ids: list[int], scopes: ScopePath) -> None:
        """Unpin a prefix and let nobody find it any more, nor what was built on it.

        What other pins hold of it stays, and so does what belongs to a wider scope: a tenant's
        prompt takes nothing of the preamble with it. Pages that running requests hold go when
        these end.

        1. The whole pages of the prefix, or what is left of them, end at `node`. What goes on
           behind it with the tokens of the prefix that follow is cut off.
        2. If `node` ends where the whole pages do, or nothing goes on from it, it is cut off too,
           together with what led only there.
        """
        self.unpin(name)
        match = self.tree.match_prefix(token_ids, scopes)
        rest = tuple(token_ids[len(match.pages) * self.page_size :])
        owner = scopes.spans[-1].scope
        node = self.tree.split_at(match)
        for child in list(node.children):  # 1
            length = min(len(child.edge.first_page), len(rest))
            goes_on = length > 0 and child.edge.first_page[:length] == rest[:length]
            if goes_on and self._may_drop(child, owner):
                self._detach(child)
        leads_on = len(rest) >= self.page_size and node.children
        if not leads_on and self._may_drop(node, owner):  # 2
            self._detach(self._top_of(node, owner))

    def _may_drop(self, node: RadixNode, owner: Scope) -> bool:
        """Tell whether a node goes with a prefix of `owner`: what is wider stays."""
        is_owners = owner == PUBLIC or node.scope.tenant == owner.tenant
        return node is not self.tree.root and is_owners and not self.pins.holds(node)

    def _top_of(self, node: RadixNode, owner: Scope) -> RadixNode:
        """Return the highest node above `node` that leads only there and that may go with it."""
        parent = node.parent
        while parent is not None and len(parent.children) == 1 and self._may_drop(parent, owner):
            node, parent = parent, parent.parent
        return node

    def drop_tenant(self, tenant: str) -> None:
        """Forget everything that is a tenant's own, pins too. Walks the whole tree."""
        for name in self.pins.names:
            if name.tenant == tenant:
                self.unpin(name)
        for node in list(self.tree.nodes()):
            forget_tenant(node, tenant)
            is_gone = node.parent is None or node.is_detached
            if node.scope.tenant == tenant and not is_gone:
                self._detach(node)

    def _detach(self, node: RadixNode) -> None:
        self.allocator.disown(self.tree.detach(node))

    def check_invariants(self, holders: Iterable[HeldPages]) -> None:
        """Recount every holder of every page. Exact and expensive; for tests and debugging."""
        check_tree(self.tree)
        self.allocator.check_invariants()
        self.pins.check_invariants()
        refs = Counter(page for node in self.tree.nodes() for page in node.pages)
        assert all(count == 1 for count in refs.values()), "a page is in the tree twice"
        assert refs.total() == self.tree.evictable_pages + self.tree.protected_pages
        for held in holders:
            refs.update(held.page_ids)
            path = reversed(self.tree.path_to(held.node))
            assert held.page_ids[: held.num_tree_pages] == [p for node in path for p in node.pages]
        for page in map(PageId, range(self.allocator.num_pages)):
            count = self.allocator.ref_count(page)
            assert count == refs[page], f"page {page}: {count} held, {refs[page]} counted"
