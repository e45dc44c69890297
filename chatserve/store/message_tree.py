"""The shape of a conversation: which message answers which.

Owns how a sequence of messages, each naming the one before it, is read as a tree. Pure: knows no
store, and of a message only its id and its parent's.

The one idea: a parent counts only if it was written earlier. Messages are only ever appended, so
all that this service wrote keeps the rule, and a document from elsewhere that breaks it (a parent
that is missing, a cycle, an id twice) still reads as a tree: the message with the impossible parent
stands at the root level. It also follows that the message written last is a leaf.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Link(NamedTuple):
    """A message and the one that it follows; None at the root level."""

    message_id: str
    parent_id: str | None


class MessageTree:
    """The messages of one conversation as a tree.

    A deleted message leaves its link behind. What followed it then follows the nearest message
    before it that is left.

    Owns: who follows whom; the order among siblings is that of writing.
    Used from: whoever reads or checks a conversation.
    """

    def __init__(self, links: Iterable[Link], deleted: Mapping[str, str | None] | None = None):
        """Read links in the order in which they were written.

        Args:
            links: The messages that there are. Of two with one id the first counts.
            deleted: The messages that are gone, with their parents.
        """
        self._parents: dict[str, str | None] = {}
        self._children: dict[str | None, list[str]] = {}
        for message_id, named in links:
            if message_id in self._parents:
                continue
            parent_id = self._left(named, deleted or {})
            self._parents[message_id] = parent_id
            self._children.setdefault(parent_id, []).append(message_id)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._parents

    def parent(self, message_id: str) -> str | None:
        """Return the message before one that is in the tree; None at the root level."""
        return self._parents[message_id]

    def path(self, message_id: str | None) -> list[str]:
        """Return the ids from the root level to a message, both included; none for None."""
        path = []
        while message_id is not None:
            path.append(message_id)
            message_id = self._parents[message_id]
        return path[::-1]

    def children(self, message_id: str | None) -> list[str]:
        """Return what follows a message, in the order of writing; for None the root level."""
        return list(self._children.get(message_id, ()))

    def below(self, message_id: str) -> list[str]:
        """Return all that follow a message, at any distance, in the order of writing."""
        inside = {message_id}
        for each, parent_id in self._parents.items():  # a parent was written earlier
            if parent_id in inside:
                inside.add(each)
        return [each for each in self._parents if each in inside and each != message_id]

    def depths(self) -> dict[str, int]:
        """Return how many messages lead to each, itself included."""
        depths: dict[str, int] = {}
        for message_id, parent_id in self._parents.items():  # a parent was written earlier
            depths[message_id] = 1 if parent_id is None else depths[parent_id] + 1
        return depths

    def leaves(self) -> list[str]:
        """Return the messages that nothing follows, in the order of writing."""
        return [message_id for message_id in self._parents if message_id not in self._children]

    def newest_leaf(self, below: str | None = None) -> str | None:
        """Return the leaf written last among a message and what follows it; None has all below it.

        None is returned only when there is nothing at all.
        """
        if below is None:
            return next(reversed(self._parents), None)
        inside = {below}
        newest = below
        for message_id, parent_id in self._parents.items():
            if parent_id in inside:
                inside.add(message_id)
                newest = message_id
        return newest

    def _left(self, message_id: str | None, deleted: Mapping[str, str | None]) -> str | None:
        """Return the nearest message that is in the tree so far, going up over deleted ones."""
        passed: set[str] = set()
        while message_id is not None and message_id not in self._parents:
            if message_id in passed or message_id not in deleted:
                return None
            passed.add(message_id)
            message_id = deleted[message_id]
        return message_id
