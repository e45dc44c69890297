"""Page ids and who holds them.

Owns the free list and, for every page, its holders: at most one is the radix tree, the others are
requests. Knows neither tokens nor tensors. A page is free while nobody holds it, *used* while a
request does, *cached* while only the tree does; `free + used + cached == num_pages` at all times.
"""

from collections.abc import Sequence
from typing import NewType

PageId = NewType("PageId", int)


class PageAllocator:
    """Hands out pages and takes them back when their last holder lets go.

    Owns: the free list and the reference counts. Used from: the engine thread.
    """

    def __init__(self, num_pages: int):
        assert num_pages > 0, f"a pool needs at least one page, got {num_pages}"
        self.num_pages = num_pages
        self._free = [PageId(page_id) for page_id in reversed(range(num_pages))]
        self._request_refs = [0] * num_pages
        self._tree_refs = bytearray(num_pages)
        self.num_used = 0
        self.num_shared = 0  # held by two or more requests

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_cached(self) -> int:
        return self.num_pages - self.num_used - len(self._free)

    def ref_count(self, page_id: PageId) -> int:
        """Return the number of holders: the tree counts once, each request once."""
        return self._request_refs[page_id] + self._tree_refs[page_id]

    def is_shared(self, page_id: PageId) -> bool:
        """Tell whether two holders can see the page, so that nobody may write to it."""
        return self.ref_count(page_id) > 1

    def try_allocate(self, count: int) -> list[PageId] | None:
        """Return `count` pages held by one request, or None, then nothing was taken."""
        if count > len(self._free):
            return None
        taken = self._free[len(self._free) - count :]
        del self._free[len(self._free) - count :]
        for page_id in taken:
            self._request_refs[page_id] = 1
        self.num_used += count
        return taken

    def retain(self, page_ids: Sequence[PageId]) -> None:
        """Add a request as a holder of pages that somebody holds already."""
        for page_id in page_ids:
            assert self.ref_count(page_id) > 0, f"page {page_id} is free and cannot be shared"
            self._request_refs[page_id] += 1
            self.num_used += self._request_refs[page_id] == 1
            self.num_shared += self._request_refs[page_id] == 2

    def release(self, page_ids: Sequence[PageId]) -> None:
        """Drop one request's hold; a page that nobody holds any more becomes free."""
        for page_id in page_ids:
            refs = self._request_refs[page_id] = self._request_refs[page_id] - 1
            assert refs >= 0, f"page {page_id} was released more often than it was taken"
            self.num_shared -= refs == 1
            self.num_used -= refs == 0
            if refs == 0 and not self._tree_refs[page_id]:
                self._free.append(page_id)

    def adopt(self, page_ids: Sequence[PageId]) -> None:
        """Make the tree a holder of pages that a request holds."""
        for page_id in page_ids:
            assert self._request_refs[page_id] > 0, f"the tree cannot adopt unheld page {page_id}"
            assert not self._tree_refs[page_id], f"page {page_id} is in the tree already"
            self._tree_refs[page_id] = 1

    def disown(self, page_ids: Sequence[PageId]) -> None:
        """Drop the tree's hold; a page that no request holds becomes free."""
        for page_id in page_ids:
            assert self._tree_refs[page_id], f"page {page_id} is not in the tree"
            self._tree_refs[page_id] = 0
            if self._request_refs[page_id] == 0:
                self._free.append(page_id)

    def check_invariants(self) -> None:
        """Recount everything from the references. Exact, expensive; for tests and debugging."""
        free = set(self._free)
        assert len(free) == len(self._free), "a page is on the free list twice"
        held = {page for page in range(self.num_pages) if self.ref_count(PageId(page)) > 0}
        assert not free & held, f"pages {sorted(free & held)} are free and held"
        assert len(free) + len(held) == self.num_pages, "a page is neither free nor held"
        assert self.num_used == sum(refs > 0 for refs in self._request_refs)
        assert self.num_shared == sum(refs > 1 for refs in self._request_refs)
