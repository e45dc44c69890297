"""What a worker says of its cache: names of prefixes, the walk that gathers them, the filter."""

import random

import pytest
from unit.cache_helpers import letters, make_tree

from chatserve.cache.held_prefixes import held_prefixes
from chatserve.cache.page_allocator import PageId
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import SHARED_BY_ALL, Scope, Span
from chatserve.prefix_digest import (
    HASH_BYTES,
    MAX_ENTRIES,
    HeldPrefixes,
    PageHashes,
    PrefixDigest,
    continue_hashes,
    tenant_salt,
)

PAGE = 4


def names(text: str, tenant: str = "") -> list[int]:
    """Return the salted names of all prefixes of a prompt that end with a page."""
    hashes = PageHashes(letters(text), PAGE)
    return [hashes[page] ^ tenant_salt(tenant) for page in range(hashes.num_pages)]


def found(tree: RadixTree, max_prefixes: int = 1000) -> set[int]:
    """Return the salted names of all that a walk finds."""
    held = held_prefixes(tree, max_prefixes)
    return {
        int.from_bytes(hashes[at : at + HASH_BYTES], "little") ^ tenant_salt(tenant)
        for tenant, hashes in held.hashes.items()
        for at in range(0, len(hashes), HASH_BYTES)
    }


def add(tree: RadixTree, text: str, tenant: str, first_page: int) -> None:
    pages = [PageId(first_page + index) for index in range(len(text) // PAGE)]
    tree.insert(tree.root, letters(text), pages, Span(Scope(tenant)))


def test_prompts_have_the_same_names_up_to_where_they_part() -> None:
    one, other = names("abcdefghijkl"), names("abcdefghixyz")

    assert one[:2] == other[:2]
    assert one[2] != other[2]


def test_same_page_behind_another_prefix_has_another_name() -> None:
    assert names("aaaabbbb")[1] != names("ccccbbbb")[1]


def test_walk_names_every_whole_page_of_every_path_and_no_tail() -> None:
    tree = make_tree(PAGE, "abcdefghij", "abcdefghklmnop", "abcdwx", "zzzz")

    assert found(tree) == {*names("abcdefgh"), *names("abcdefghklmn"), *names("zzzz")}


def test_names_stay_right_when_nodes_are_split_cut_and_extended() -> None:
    """Remembered hashes of a node that lost its end would name what is not there any more."""
    tree = make_tree(PAGE, "aaaabbbbccccdddd")
    found(tree)
    tree.evict(2)
    after_cut = found(tree)
    add(tree, "aaaabbbbeeee", "", 10)
    add(tree, "aaaaffff", "", 20)

    assert after_cut == set(names("aaaabbbb"))
    assert found(tree) == {*names("aaaabbbbeeee"), *names("aaaaffff")}


def test_random_trees_are_named_as_if_from_scratch() -> None:
    rng = random.Random(0)
    tree = RadixTree(PAGE)
    for step in range(200):
        add(tree, "".join(rng.choices("ab", k=PAGE * rng.randint(1, 5))), "", 100 * step)
        if step % 3 == 0:
            tree.evict(rng.randint(1, 4))
        remembered = found(tree)
        for node in tree.nodes():
            node.prefix_hashes = b""
        assert remembered == found(tree)


def test_what_may_not_be_found_any_more_is_not_named() -> None:
    tree = make_tree(PAGE, "aaaabbbb", "aaaacccc")
    node = tree.match_prefix(letters("aaaabbbb"), SHARED_BY_ALL).node
    tree.inc_lock_ref(node)

    tree.detach(node)

    assert found(tree) == set(names("aaaacccc"))


def test_pages_of_two_tenants_have_different_names() -> None:
    tree = RadixTree(PAGE)
    add(tree, "aaaa", "acme", 0)
    add(tree, "aaaa", "brown", 1)

    assert found(tree) == {*names("aaaa", "acme"), *names("aaaa", "brown")}
    assert len(found(tree)) == 2


def test_tree_that_is_too_large_is_named_by_every_second_page() -> None:
    tree = make_tree(PAGE, "aaaabbbbccccdddd", "aaaabbbbeeee")

    assert held_prefixes(tree, 3).stride == 2
    assert found(tree, 3) == {names("aaaabbbb")[1], names("aaaabbbbccccdddd")[3]}


@pytest.mark.parametrize("num_entries", [0, 1, 25, 26, 3000, MAX_ENTRIES])
def test_digest_affirms_all_that_it_was_given_and_little_else(num_entries: int) -> None:
    rng = random.Random(num_entries)
    hashes = rng.randbytes(num_entries * HASH_BYTES)
    held = HeldPrefixes(PAGE, 1, {"acme": hashes})

    digest = PrefixDigest.of(held)

    given = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
    salt = tenant_salt("acme")
    assert all(digest.holds(int.from_bytes(each, "little") ^ salt) for each in given)
    assert sum(digest.holds(rng.getrandbits(64)) for _ in range(2000)) < 2000 * 0.025
    assert len(digest.bits) <= 16 * 1024
    assert PrefixDigest.unpack(digest.pack()) == digest


def test_digest_of_one_tenant_denies_the_same_prompt_of_another() -> None:
    token_ids = letters("aaaabbbbcccc")
    held = HeldPrefixes(PAGE, 1, {"acme": continue_hashes(b"", token_ids, PAGE)})

    digest = PrefixDigest.of(held)

    assert all(digest.holds(name) for name in names("aaaabbbbcccc", "acme"))
    assert not any(digest.holds(name) for name in names("aaaabbbbcccc", "brown"))
