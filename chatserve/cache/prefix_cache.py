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
    release      all is let go, nothing enters the tree

Invariants:
  1. The holders of a page are the tree, each request whose `page_ids` names it, and each copy that
     has not run yet and reads it.
  2. A page that two holders can see is never written: a request writes only at or behind
     `num_computed`, and those pages are private (`assert_writable`).
  3. The first `num_tree_pages` of a request's pages are exactly the pages of the path to `node`.
  4. A failed `try_admit` or `try_grow` changes nothing but recency, and what was evicted for it.

Rejected: copying when a write is about to happen (the scheduler would have to ask for every token;
the match already knows the only page where it can happen).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatserve.cache.page_allocator import PageAllocator, PageId
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.radix_tree import Insertion, Match, RadixTree


@dataclass(frozen=True, slots=True)
class PageCopy:
    """Copy the first `num_tokens` tokens' KV of one page to another before this step's forward.

    The cache holds both pages until `release_copies`: the source may leave the tree meanwhile.
    """

    source: PageId
    destination: PageId
    num_tokens: int


@dataclass(slots=True)
class HeldPages:
    """The pages of one request. Mutable; changed by the cache only."""

    page_ids: list[PageId]
    node: RadixNode
    num_tree_pages: int


@dataclass(frozen=True, slots=True)
class Admission:
    """What `try_admit` gave: pages, how many leading tokens need no computation, and the copy."""

    held: HeldPages
    num_cached_tokens: int
    copy: PageCopy | None


class PrefixCache:
    """Gives pages to requests, remembers what they computed, and finds it again.

    Owns: the radix tree and the page allocator. Used from: the engine thread.
    """

    def __init__(self, num_pages: int, page_size: int, *, enabled: bool = True):
        self.page_size = page_size
        self.enabled = enabled
        self.allocator = PageAllocator(num_pages)
        self.tree = RadixTree(page_size)

    @property
    def num_available_pages(self) -> int:
        """Pages that could be given out now: free, or evictable."""
        return self.allocator.num_free + self.tree.evictable_pages

    def pages_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.page_size)

    def match_prefix(self, token_ids: list[int]) -> Match:
        """Return what is known of `token_ids` short of the last one. Changes nothing.

        The last token is always computed anew: its logits are needed.
        """
        return self.tree.match_prefix(token_ids[:-1] if self.enabled else [])

    def try_admit(self, match: Match, num_tokens: int) -> Admission | None:
        """Return pages for the first `num_tokens` tokens of a request, or None.

        `match` is spent by this: the tree may be split where it ends. A copy needs its source and
        its destination at once; where only that one page is missing, whole pages are taken and the
        partial one is not, so that a request that fits the pool is admitted.
        """
        node = self.tree.split_at(match)
        admission = self._try_admit(node, match, num_tokens)
        if admission is None and match.partial_page is not None:
            admission = self._try_admit(node, match.without_partial(), num_tokens)
        return admission

    def _try_admit(self, node: RadixNode, match: Match, num_tokens: int) -> Admission | None:
        """Lock, then allocate: allocation evicts, and must not evict what the match found."""
        self.tree.inc_lock_ref(node)
        sources = [match.partial_page] if match.partial_page is not None else []
        self.allocator.retain([*match.pages, *sources])
        new_pages = self._try_allocate(self.pages_for(num_tokens) - len(match.pages))
        if new_pages is None:
            self.allocator.release([*sources, *match.pages])
            self.tree.dec_lock_ref(node)
            return None
        copy = PageCopy(sources[0], new_pages[0], match.partial_tokens) if sources else None
        held = HeldPages([*match.pages, *new_pages], node, len(match.pages))
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
        # A pending copy may hold an evicted page, so eviction can free less than it evicts.
        while (missing := count - self.allocator.num_free) > 0:
            evicted = self.tree.evict(missing)
            if not evicted:
                return None
            self.allocator.disown(evicted)
        return self.allocator.try_allocate(count)

    def commit(self, held: HeldPages, token_ids: list[int], num_computed: int) -> None:
        """Give the tree the full pages among the first `num_computed` tokens."""
        first, full = held.num_tree_pages, num_computed // self.page_size
        if not self.enabled or full <= first:
            return
        tokens = token_ids[first * self.page_size : full * self.page_size]
        insertion = self._insert(held, tokens, held.page_ids[first:full])
        self._remap(held, first, insertion.pages)
        held.num_tree_pages = full

    def _insert(self, held: HeldPages, tokens: list[int], pages: list[PageId]) -> Insertion:
        insertion = self.tree.insert(held.node, tokens, pages)
        self.allocator.adopt(insertion.adopted)
        self.allocator.disown(insertion.dropped)
        if insertion.node is not held.node:
            self.tree.inc_lock_ref(insertion.node)
            self.tree.dec_lock_ref(held.node)
            held.node = insertion.node
        return insertion

    def _remap(self, held: HeldPages, first: int, survivors: Sequence[PageId]) -> None:
        """Replace the request's pages from `first` on by the tree's; nothing is freed before."""
        ours = held.page_ids[first : first + len(survivors)]
        self.allocator.retain(survivors)
        held.page_ids[first : first + len(survivors)] = survivors
        self.allocator.release(ours)

    def retire(self, held: HeldPages, token_ids: list[int], num_computed: int) -> None:
        """Remember the first `num_computed` tokens, also in a partly filled page; let all go."""
        self.commit(held, token_ids, num_computed)
        full = num_computed // self.page_size
        tail = token_ids[full * self.page_size : num_computed]
        if self.enabled and tail:
            self._insert(held, tail, [held.page_ids[full]])
        self.release(held)

    def release(self, held: HeldPages) -> None:
        """Let all pages go. Idempotent."""
        self.tree.dec_lock_ref(held.node)
        self.allocator.release(held.page_ids)
        held.page_ids, held.node, held.num_tree_pages = [], self.tree.root, 0

    def release_copies(self, copies: Iterable[PageCopy]) -> None:
        """Let the sources go, after the step that executed the copies."""
        self.allocator.release([copy.source for copy in copies])

    def assert_writable(self, held: HeldPages, start: int, end: int) -> None:
        """Crash if the tokens from `start` to `end` would be written where others can see it."""
        for index in range(start // self.page_size, self.pages_for(end)):
            page_id = held.page_ids[index]
            assert not self.allocator.is_shared(page_id), f"page {page_id} is shared, not writable"

    def check_invariants(
        self, holders: Iterable[HeldPages], copies: Iterable[PageCopy] = ()
    ) -> None:
        """Recount every holder of every page. Exact and expensive; for tests and debugging."""
        self.tree.check_invariants()
        self.allocator.check_invariants()
        refs = Counter(page for node in self.tree.nodes() for page in node.pages)
        assert all(count == 1 for count in refs.values()), "a page is in the tree twice"
        assert refs.total() == self.tree.evictable_pages + self.tree.protected_pages
        for held in holders:
            refs.update(held.page_ids)
            path = _pages_to(held.node)
            assert held.page_ids[: held.num_tree_pages] == path, (held, path)
        refs.update(copy.source for copy in copies)
        for page in map(PageId, range(self.allocator.num_pages)):
            count = self.allocator.ref_count(page)
            assert count == refs[page], f"page {page}: {count} held, {refs[page]} counted"


def _pages_to(node: RadixNode) -> list[PageId]:
    pages: list[PageId] = []
    step: RadixNode | None = node
    while step is not None:
        pages[:0] = step.pages
        step = step.parent
    return pages
