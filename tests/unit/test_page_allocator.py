"""The page allocator: holders, the free list, and the three counts of pages."""

import pytest

from chatserve.cache.page_allocator import PageAllocator


def test_a_page_is_free_again_when_its_last_holder_lets_go() -> None:
    allocator = PageAllocator(4)
    pages = allocator.try_allocate(2)
    assert pages is not None

    allocator.retain(pages)
    allocator.release(pages)

    assert allocator.num_free == 2
    allocator.release(pages)
    assert allocator.num_free == 4
    allocator.check_invariants()


def test_an_allocation_that_does_not_fit_takes_nothing() -> None:
    allocator = PageAllocator(3)

    assert allocator.try_allocate(4) is None

    assert allocator.num_free == 3


def test_a_page_of_the_tree_is_used_while_a_request_holds_it_and_cached_after() -> None:
    allocator = PageAllocator(3)
    pages = allocator.try_allocate(1)
    assert pages is not None

    allocator.adopt(pages)
    assert (allocator.num_free, allocator.num_used, allocator.num_cached) == (2, 1, 0)
    allocator.release(pages)

    assert (allocator.num_free, allocator.num_used, allocator.num_cached) == (2, 0, 1)
    allocator.disown(pages)
    assert allocator.num_free == 3
    allocator.check_invariants()


def test_shared_counts_pages_that_two_requests_hold_not_the_tree() -> None:
    allocator = PageAllocator(3)
    pages = allocator.try_allocate(2)
    assert pages is not None
    allocator.adopt(pages)
    assert allocator.num_shared == 0

    allocator.retain(pages[:1])

    assert allocator.num_shared == 1
    assert allocator.is_shared(pages[0])
    allocator.release(pages[:1])
    assert allocator.num_shared == 0


def test_releasing_a_page_too_often_crashes() -> None:
    allocator = PageAllocator(1)
    pages = allocator.try_allocate(1)
    assert pages is not None
    allocator.release(pages)

    with pytest.raises(AssertionError, match="released more often"):
        allocator.release(pages)


def test_a_free_page_cannot_be_shared_or_adopted() -> None:
    allocator = PageAllocator(1)
    pages = allocator.try_allocate(1)
    assert pages is not None
    allocator.release(pages)

    with pytest.raises(AssertionError, match="is free"):
        allocator.retain(pages)
    with pytest.raises(AssertionError, match="unheld"):
        allocator.adopt(pages)
