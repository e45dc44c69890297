"""The order of eviction: what goes first, what it learns, and what taking it out costs."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.cache_helpers import letters, make_tree

from chatserve.cache.eviction_queue import EvictionQueue, expected_stay
from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import NO_RETENTION, PUBLIC, SHARED_BY_ALL, Retention, Span


def make_leaf(
    last_access: int,
    *,
    parent: RadixNode | None = None,
    retention: Retention = NO_RETENTION,
    was_reused: bool = False,
    children: tuple[int, int] = (0, 0),
) -> RadixNode:
    """Return a leaf of one page; `children` says how many it had that were reused and lost."""
    return RadixNode(
        key=[0],
        pages=[PageId(0)],
        parent=parent or RadixNode(key=[], pages=[], parent=None),
        retention=retention,
        last_access=last_access,
        was_reused=was_reused,
        num_reused_children=children[0],
        num_lost_children=children[1],
    )


def pop_all(queue: EvictionQueue, *nodes: RadixNode) -> list[int]:
    """Offer nodes and return the places they had among them in the order in which they leave."""
    for node in nodes:
        queue.offer(node, len(nodes))
    return [nodes.index(node) for node in iter(queue.pop, None)]


def queue_with_lifetime(lifetime: int, now: int) -> EvictionQueue:
    """Return a queue from which nodes have left that were unused for `lifetime`."""
    queue = EvictionQueue()
    queue.offer(make_leaf(now - lifetime), 1)
    clock = make_leaf(now)
    clock.lock_ref = 1
    queue.offer(clock, 1)
    for _ in range(200):
        queue.pop()
        queue.offer(make_leaf(now - lifetime), 1)
    queue.pop()
    return queue


def test_where_nothing_is_known_the_least_recently_used_goes_first() -> None:
    leaves = [make_leaf(last_access) for last_access in (3, 1, 2)]

    order = pop_all(EvictionQueue(), *leaves)

    assert order == [1, 2, 0]


def test_the_example_of_the_docstring() -> None:
    queue = queue_with_lifetime(100, now=1_000)
    for _ in range(3_000):  # sessions go on three times of four
        session = make_leaf(1_000, was_reused=True)
        for _ in range(3):
            queue.record_reuse(session)
        queue.record_loss(session)
    prompt = make_leaf(850, was_reused=True, children=(3, 2))
    session = make_leaf(880, was_reused=True)
    document = make_leaf(930, parent=make_leaf(0, children=(0, 12)))

    order = pop_all(queue, prompt, session, document)

    assert order == [2, 1, 0]


def test_a_first_path_is_kept_as_long_as_its_siblings_deserve() -> None:
    def stay(reused: int, lost: int) -> float:
        return expected_stay(make_leaf(0, parent=make_leaf(0, children=(reused, lost))), 0.8)

    assert stay(0, 0) == 1
    assert stay(5, 3) == pytest.approx(9 / 12 / 0.8)
    assert stay(0, 4) == pytest.approx(4 / 8 / 0.8)
    assert stay(0, 1_000) == 1 / 8


def test_a_first_path_never_counts_for_more_than_one_that_was_continued() -> None:
    first = make_leaf(0, parent=make_leaf(0, children=(1_000, 0)))
    continued = make_leaf(0, was_reused=True)

    assert expected_stay(first, chance=0.1) == expected_stay(continued, chance=0.1) == 1


def test_a_higher_priority_goes_later_whatever_its_use() -> None:
    leaves = [
        make_leaf(1, retention=Retention(2)),
        make_leaf(9),
        make_leaf(5, retention=Retention(1)),
    ]

    order = pop_all(EvictionQueue(), *leaves)

    assert order == [1, 2, 0]


def test_a_node_that_gets_a_priority_is_moved_back() -> None:
    tree = make_tree(2, "aabb", "ccdd")

    tree.insert(
        tree.root, letters("aabb"), [PageId(8), PageId(9)], Span(PUBLIC, retention=Retention(1))
    )
    tree.insert(tree.root, letters("ccdd"), [PageId(8), PageId(9)], Span(PUBLIC))

    assert tree.evict(2) == [2, 3]


def test_a_used_node_leaves_only_by_its_last_entry() -> None:
    queue = EvictionQueue()
    leaf, other = make_leaf(1), make_leaf(2)
    queue.offer(leaf, 2)
    queue.offer(other, 2)

    leaf.last_access = 3
    queue.offer(leaf, 2)

    assert queue.nodes() == {id(leaf), id(other)}
    assert list(iter(queue.pop, None)) == [other, leaf]


def test_a_locked_node_is_passed_over() -> None:
    queue = EvictionQueue()
    locked, free = make_leaf(1), make_leaf(2)
    queue.offer(locked, 2)
    queue.offer(free, 2)

    locked.lock_ref = 1

    assert queue.pop() is free
    assert queue.pop() is None


def test_a_leaf_that_lost_pages_is_next_again() -> None:
    tree = make_tree(1, "abcd", "wxyz")

    evicted = tree.evict(1) + tree.evict(1) + tree.evict(3)

    assert evicted == [3, 2, 0, 1, 7]


def run(cache: PrefixCache, text: str) -> None:
    tokens = letters(text)
    admission = cache.try_admit(cache.match_prefix(tokens), len(tokens))
    assert admission is not None
    cache.retire(admission.held, tokens, len(tokens))


def test_each_child_counts_once_as_reused_however_often_it_is() -> None:
    cache = PrefixCache(32, 1)

    for text in ("abc", "abcde", "abcdefg", "axy"):
        run(cache, text)

    top = cache.tree.match_prefix(letters("a"), SHARED_BY_ALL).node
    assert (top.num_reused_children, top.num_lost_children) == (1, 0)
    assert cache.tree.root.num_reused_children == 1


def test_a_request_that_is_not_admitted_is_no_reuse() -> None:
    cache = PrefixCache(4, 1)
    run(cache, "ab")

    refused = cache.try_admit(cache.match_prefix(letters("abcdefgh")), 8)

    assert refused is None
    assert not cache.tree.match_prefix(letters("ab"), SHARED_BY_ALL).node.was_reused


def test_only_a_child_that_was_never_used_again_counts_as_lost() -> None:
    cache = PrefixCache(32, 1)
    for text in ("pa", "pb", "pbb"):
        run(cache, text)

    cache.tree.evict(3)

    top = cache.tree.match_prefix(letters("p"), SHARED_BY_ALL).node
    assert (top.num_reused_children, top.num_lost_children) == (1, 1)
    assert top.was_shared


class CountedInt(int):
    """A priority that counts how often it is compared. Equal ones are different objects."""

    num_comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedInt.num_comparisons += 1
        return int(self) == other

    def __lt__(self, other: int) -> bool:
        CountedInt.num_comparisons += 1
        return int(self) < int(other)

    __hash__ = int.__hash__


def comparisons_to_pop(num_nodes: int, num_popped: int) -> float:
    queue = EvictionQueue()
    for index in range(num_nodes):
        last_access = index * 7_919 % num_nodes
        queue.offer(make_leaf(last_access, retention=Retention(CountedInt(0))), num_nodes)
    CountedInt.num_comparisons = 0
    for _ in range(num_popped):
        queue.pop()
    return CountedInt.num_comparisons / num_popped


@pytest.mark.parametrize("num_nodes", [1_000, 16_000])
def test_taking_a_node_out_compares_a_few_times_the_logarithm_of_all(num_nodes: int) -> None:
    comparisons = comparisons_to_pop(num_nodes, 100)

    assert comparisons < 4 * log2(num_nodes)


def test_a_node_that_is_used_again_and_again_does_not_fill_the_queue() -> None:
    queue = EvictionQueue()
    leaf = make_leaf(0, retention=Retention(CountedInt(0)))
    CountedInt.num_comparisons = 0

    for last_access in range(10_000):
        leaf.last_access = last_access
        queue.offer(leaf, 1)
    queue.pop()

    assert CountedInt.num_comparisons < 10_000 * 4 * log2(64)


Uses = list[tuple[list[int], bool, int]]
USES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 2), min_size=1, max_size=8), st.booleans(), st.integers(0, 3)
    ),
    max_size=40,
)


@given(USES, st.integers(1, 20))
def test_no_page_stays_without_all_pages_before_it(uses: Uses, num_evicted: int) -> None:
    tree = tree_of(uses)
    before = predecessors(tree)

    evicted = tree.evict(num_evicted)

    left = set(before) - set(evicted)
    assert len(evicted) == len(set(evicted)) <= num_evicted
    assert all(before[page] in left or before[page] is None for page in left)


@given(USES)
def test_every_evictable_node_and_no_other_is_queued(uses: Uses) -> None:
    tree = tree_of(uses)

    queued = tree.queued_for_eviction()

    assert queued == {id(node) for node in tree.nodes() if node.is_evictable}


@given(USES)
def test_all_of_an_unlocked_tree_can_be_evicted_lowest_priority_first(uses: Uses) -> None:
    tree = tree_of([(tokens, False, priority) for tokens, _, priority in uses])
    num_pages = tree.evictable_pages
    lowest = min((n.retention.priority for n in tree.nodes() if n.is_evictable), default=None)
    priorities = {page: node.retention.priority for node in tree.nodes() for page in node.pages}

    first, others = tree.evict(1), tree.evict(num_pages)

    assert [priorities[page] for page in first] == [lowest] * bool(num_pages)
    assert sorted(first + others) == sorted(priorities)
    assert tree.num_nodes == tree.evictable_pages == 0


def tree_of(uses: Uses) -> RadixTree:
    """Insert each list of tokens, some locked for good, each with a priority."""
    tree, next_page = RadixTree(1), 0
    for tokens, is_locked, priority in uses:
        pages = [PageId(next_page + index) for index in range(len(tokens))]
        next_page += len(tokens)
        span = Span(PUBLIC, retention=Retention(priority))
        node = tree.insert(tree.root, tokens, pages, span).node
        tree.record_reuse(node)
        if is_locked:
            tree.inc_lock_ref(node)
    return tree


def predecessors(tree: RadixTree) -> dict[PageId, PageId | None]:
    """Return the page before each page; None before the first."""
    before: dict[PageId, PageId | None] = {}
    for node in tree.nodes():
        last = node.parent.pages[-1] if node.parent and node.parent.pages else None
        for page in node.pages:
            before[page], last = last, page
    return before
