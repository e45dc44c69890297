"""The tree of messages, against a model that looks everything up anew."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatserve.store.message_tree import Link, MessageTree

IDS = st.sampled_from("abcdefgh")
LINKS = st.lists(st.builds(Link, IDS, st.none() | IDS), max_size=12)
DELETED = st.dictionaries(st.sampled_from("uvwxyz"), st.none() | st.sampled_from("abcuvwxyz"))
LINKS_OVER_DELETED = st.lists(
    st.builds(Link, IDS, st.none() | st.sampled_from("abcdefghuvwxyz")), max_size=12
)


class SlowTree:
    """What a tree must say, by the rules as they are told and nothing remembered."""

    def __init__(self, links: list[Link], deleted: dict[str, str | None]) -> None:
        self.ids = list(dict.fromkeys(link.message_id for link in links))
        self.parents: dict[str, str | None] = {}
        for message_id in self.ids:
            parent = next(link.parent_id for link in links if link.message_id == message_id)
            written = self.ids[: self.ids.index(message_id)]
            for _ in range(len(deleted) + 1):
                if parent not in written:
                    parent = deleted.get(parent) if parent is not None else None
            self.parents[message_id] = parent if parent in written else None

    def path(self, message_id: str) -> list[str]:
        parent = self.parents[message_id]
        return [*(self.path(parent) if parent else []), message_id]

    def leaves(self) -> list[str]:
        return [each for each in self.ids if each not in self.parents.values()]

    def below(self, message_id: str) -> list[str]:
        return [each for each in self.ids if message_id in self.path(each)]


@given(LINKS_OVER_DELETED, DELETED)
def test_tree_says_what_the_rules_say(links: list[Link], deleted: dict[str, str | None]) -> None:
    tree, slow = MessageTree(links, deleted), SlowTree(links, deleted)

    assert tree.leaves() == slow.leaves()
    assert tree.newest_leaf() == (slow.ids[-1] if slow.ids else None)
    for message_id in slow.ids:
        parent = slow.parents[message_id]
        assert tree.parent(message_id) == parent
        assert tree.path(message_id) == slow.path(message_id)
        assert tree.depths()[message_id] == len(tree.path(message_id))
        assert tree.newest_leaf(message_id) == slow.below(message_id)[-1]


@given(LINKS)
def test_every_message_is_on_the_path_to_some_leaf_and_paths_end(links: list[Link]) -> None:
    tree = MessageTree(links)

    paths = [tree.path(leaf) for leaf in tree.leaves()]

    assert {each for path in paths for each in path} == {link.message_id for link in links}
    assert all(len(path) == len(set(path)) for path in paths)


@pytest.mark.parametrize(
    ("links", "path"),
    [
        ([Link("a", "b"), Link("b", "a")], ["a", "b"]),
        ([Link("a", "a"), Link("b", "a")], ["a", "b"]),
        ([Link("a", None), Link("b", "missing")], ["b"]),
        ([Link("a", None), Link("b", "a"), Link("b", None)], ["a", "b"]),
    ],
)
def test_cycles_missing_parents_and_repeated_ids_read_as_a_tree(
    links: list[Link], path: list[str]
) -> None:
    tree = MessageTree(links)

    assert tree.path("b") == path


def test_what_followed_a_deleted_message_follows_the_one_before_it() -> None:
    tree = MessageTree([Link("a", None), Link("d", "c")], {"c": "b", "b": "a"})

    assert tree.path("d") == ["a", "d"]


def test_empty_tree_has_no_leaf() -> None:
    tree = MessageTree([])

    assert (tree.leaves(), tree.newest_leaf(), tree.children(None)) == ([], None, [])
    assert "a" not in tree
