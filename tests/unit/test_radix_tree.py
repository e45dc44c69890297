"""The radix tree, case by case. `test_radix_tree_model.py` compares it with a dictionary."""

import random

import pytest
from unit.cache_helpers import letters, make_tree

from chatserve.cache.page_allocator import PageId
from chatserve.cache.radix_check import check_tree, render
from chatserve.cache.radix_match import Match
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import PUBLIC, SHARED_BY_ALL, Span

EVERYBODY = Span(PUBLIC)


def find(tree: RadixTree, text: str) -> Match:
    return tree.match_prefix(letters(text), SHARED_BY_ALL)


def matched(tree: RadixTree, text: str) -> tuple[list[PageId], PageId | None, int]:
    match = find(tree, text)
    return list(match.pages), match.partial_page, match.partial_tokens


def test_nothing_matches_in_an_empty_tree() -> None:
    assert matched(make_tree(4), "abcd") == ([], None, 0)


def test_whole_pages_match_by_reference_and_the_rest_of_a_page_as_a_part_of_it() -> None:
    tree = make_tree(4, "abcdefghij")

    assert matched(tree, "abcdefghij") == ([0, 1], 2, 2)
    assert matched(tree, "abcdefghijk") == ([0, 1], 2, 2)
    assert matched(tree, "abcdefXX") == ([0], 1, 2)


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_match_ends_at_every_cut_inside_and_at_pages(cut: int) -> None:
    tree = make_tree(4, "abcdefgh")

    pages, _, partial = matched(tree, "abcdefgh"[:cut] + "ZZZZ")

    assert len(pages) * 4 + partial == cut


def test_among_siblings_the_longest_common_prefix_wins() -> None:
    tree = make_tree(4, "abcd", "abxy", "axyz")

    assert matched(tree, "abxZ") == ([], 1, 3)
    assert matched(tree, "abcZ") == ([], 0, 3)
    assert matched(tree, "aZZZ")[2] == 1


def test_matching_changes_nothing_not_even_the_order_of_eviction() -> None:
    tree = make_tree(2, "aabb", "ccdd")

    before = render(tree)
    find(tree, "aabb")

    assert render(tree) == before
    assert tree.evict(1) == [1]


def test_inserting_what_is_known_keeps_the_first_pages() -> None:
    tree = make_tree(2, "aabb")

    insertion = tree.insert(
        tree.root, letters("aabbcc"), [PageId(7), PageId(8), PageId(9)], EVERYBODY
    )

    assert insertion.pages == [0, 1, 9]
    assert insertion.adopted == [9]
    check_tree(tree)


def test_inserting_a_branch_splits_at_the_page_boundary() -> None:
    tree = make_tree(2, "aabbcc", "aabbdd")

    assert tree.num_nodes == 3
    assert matched(tree, "aabbccX")[0] == [0, 1, 2]
    check_tree(tree)


def test_a_tail_that_a_new_page_begins_with_is_dropped() -> None:
    tree = make_tree(4, "abcdef")

    node = find(tree, "abcd")
    insertion = tree.insert(tree.split_at(node), letters("efgh"), [PageId(9)], EVERYBODY)

    assert insertion.dropped == [1]
    assert tree.num_nodes == 2
    assert matched(tree, "abcdefghX")[0] == [0, 9]
    check_tree(tree)


def test_a_tail_that_is_known_already_is_not_stored_again() -> None:
    tree = make_tree(4, "abcd")

    insertion = tree.insert(tree.root, letters("ab"), [PageId(9)], EVERYBODY)

    assert insertion.adopted == []
    assert insertion.pages == []


def test_split_keeps_lock_ref_on_both_halves() -> None:
    tree = make_tree(2, "aabbcc")
    (node,) = tree.root.children
    tree.inc_lock_ref(node)

    upper = tree.split_node(node, 1)

    assert (upper.lock_ref, node.lock_ref) == (1, 1)
    assert list(upper.children) == [node]
    tree.dec_lock_ref(node)
    assert (upper.lock_ref, node.lock_ref) == (0, 0)
    check_tree(tree)


def test_locked_nodes_are_protected_and_everything_above_them() -> None:
    tree = make_tree(2, "aabb", "aacc")
    leaf = find(tree, "aabb").node
    tree.inc_lock_ref(leaf)

    assert tree.protected_pages == 2
    assert sorted(tree.evict(10)) == [3]
    tree.dec_lock_ref(leaf)
    assert sorted(tree.evict(10)) == [0, 1]
    check_tree(tree)


def test_a_leaf_another_request_holds_is_never_extended_under_it() -> None:
    """Extending a leaf that somebody else ends at would move the end of their path."""
    tree = make_tree(2, "aabb")
    leaf = find(tree, "aabb").node
    tree.inc_lock_ref(leaf)

    insertion = tree.insert(
        tree.root, letters("aabbcc"), [PageId(5), PageId(6), PageId(7)], EVERYBODY
    )

    assert insertion.node is not leaf
    assert leaf.key == letters("aabb")


def test_eviction_takes_the_least_recently_used_leaf_and_no_more_than_asked() -> None:
    tree = make_tree(2, "aabbcc", "ddee")
    tree.inc_lock_ref(find(tree, "aabbcc").node)
    tree.dec_lock_ref(find(tree, "aabbcc").node)

    assert tree.evict(1) == [4]
    assert tree.evict(2) == [3, 2]
    assert matched(tree, "aabbcc") == ([0, 1], None, 0)
    check_tree(tree)


def test_eviction_of_an_empty_tree_gives_nothing() -> None:
    assert make_tree(2).evict(3) == []


def test_one_node_with_many_children_compares_few_of_them() -> None:
    """Scanning 50,000 siblings that share ten tokens took 39 ms a match."""
    tree, rng, prefix = RadixTree(16), random.Random(1), list(range(10))
    for page in range(20_000):
        tail = [rng.randrange(10**9) for _ in range(6)]
        tree.insert(tree.root, prefix + tail, [PageId(page)], EVERYBODY)
    compared = 0

    class CountingToken(int):
        def __lt__(self, other: int) -> bool:
            nonlocal compared
            compared += 1
            return int(self) < other

        __gt__ = __lt__

    match = tree.match_prefix([*prefix, *map(CountingToken, [5] * 6)], SHARED_BY_ALL)

    assert match.partial_tokens >= 10
    assert compared < 100
