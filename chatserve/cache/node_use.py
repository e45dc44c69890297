"""What is remembered of the tree's nodes for people to see: how often found, and to whom known.

Owns the rule of both. No decision of the cache depends on them.

A node is known to an owner whose prompts and answers have contained every token of it. Only such a
one may be shown what it says; in a scope that several users share, that is not everybody who may
use its pages. Whoever extends a leaf knows all of it, and who knew it before does not any more.
"""

from collections.abc import Iterable

from chatserve.cache.radix_node import RadixNode
from chatserve.cache.scope import Owner

MAX_USERS = 32
"""How many owners are remembered of a node, the first ones. What more share is mostly a prompt, and
then its tenant or the operator is one of them, who is remembered in any case."""


def record_hit(nodes: Iterable[RadixNode], owner: Owner) -> None:
    """Say that a request of `owner` was admitted and found all of these nodes."""
    for node in nodes:
        node.num_hits += 1
        _add_owner(node, owner)


def record_computed(path: Iterable[RadixNode], owner: Owner, grown: RadixNode | None) -> None:
    """Say that a request of `owner` knows all of a path, and which node of it was its work."""
    for node in path:
        if node is grown:
            node.known_to = (owner,)
        else:
            _add_owner(node, owner)


def forget_tenant(node: RadixNode, tenant: str) -> None:
    """Say that a tenant's requests never were, for another that may come by the same name."""
    node.known_to = tuple(owner for owner in node.known_to if owner.tenant != tenant)


def _add_owner(node: RadixNode, owner: Owner) -> None:
    has_room = len(node.known_to) < MAX_USERS or not owner.user
    if has_room and owner not in node.known_to:
        node.known_to += (owner,)
