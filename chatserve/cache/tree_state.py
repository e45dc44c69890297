"""The radix tree as a list of records, for people to look at.

Owns the walk, the names of nodes and the bound on how many are told. Changes nothing but what nodes
remember of their hashes. Detached nodes cannot be found, and are not told.
"""

import hashlib
import secrets
import struct
from collections import Counter
from dataclasses import dataclass

from chatserve.cache.held_prefixes import hashes_of
from chatserve.cache.pins import Pins
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import Scope
from chatserve.cache_snapshot import (
    NUM_FIRST_TOKENS,
    NUM_TOKENS_BEFORE,
    HiddenNodes,
    NodeState,
)
from chatserve.prefix_digest import HASH_BYTES

MAX_NODES = 4000
_MIN_NODES_OF_SCOPE = 100
_ID_BYTES = 6  # a number that every JSON reader keeps whole


@dataclass(frozen=True, slots=True)
class TreeState:
    """The nodes that are told, parents first, and how many of each scope are not."""

    nodes: list[NodeState]
    hidden: list[HiddenNodes]
    ids: dict[RadixNode, int]

    def id_above(self, node: RadixNode | None) -> int | None:
        """Return the id of the deepest node that is told on the path to `node`."""
        while node is not None and node not in self.ids:
            node = node.parent
        return self.ids[node] if node is not None else None


class NodeNames:
    """Names nodes by where they begin, so that a name stays when a node is split or grows.

    They come of the tokens before and of the first page, under a secret: a name tells nothing to
    somebody who guesses tokens, and nothing of how many nodes there are.

    Owns: the secret. Used from: the engine thread.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret or secrets.token_bytes(16)

    def name(self, node: RadixNode, before: bytes) -> int:
        """Return the id of a node; `before` is the hash of the prefix above it."""
        scope, page = node.edge
        packed = struct.pack(f"<{len(page)}I", *page)
        told = b"\0".join((before, scope.tenant.encode(), scope.user.encode(), packed))
        return int.from_bytes(
            hashlib.blake2b(told, digest_size=_ID_BYTES, key=self._secret).digest(), "little"
        )


def tree_state(
    tree: RadixTree, pins: Pins, names: NodeNames, now_s: float, max_nodes: int = MAX_NODES
) -> TreeState:
    """Return the nodes of the tree, at most about `max_nodes` of them.

    Where there are more, each scope has the same share, and tells the nodes with the most pages at
    and below them.
    """
    told = _within_bound(tree, max_nodes)
    pinned = pins.tenants_by_node()
    state = TreeState([], [], {})
    hidden: Counter[Scope] = Counter()
    stack = [(child, b"") for child in reversed(list(tree.root.children))]
    while stack:
        node, before = stack.pop()
        hashes = hashes_of(node, before, tree.page_size)
        is_below_told = node.parent is tree.root or node.parent in state.ids
        if is_below_told and (told is None or node in told):
            state.ids[node] = names.name(node, before)
            state.nodes.append(_describe(node, state, sorted(pinned.get(node, ())), now_s))
        else:
            hidden[node.scope] += 1
        last = hashes[-HASH_BYTES:]
        stack += [(child, last) for child in reversed(list(node.children))]
    state.hidden.extend(
        HiddenNodes(scope.tenant, scope.only_user, count) for scope, count in hidden.items()
    )
    return state


def _describe(node: RadixNode, state: TreeState, pinned_by: list[str], now_s: float) -> NodeState:
    return NodeState(
        node_id=state.ids[node],
        parent_id=state.id_above(node.parent),
        tenant=node.scope.tenant,
        user=node.scope.only_user,
        num_tokens=len(node.key),
        pages=list(node.pages),
        num_hits=node.num_hits,
        idle_s=round(now_s - node.last_use_s, 3),
        pinned_by=pinned_by,
        known_to=[list(owner) for owner in node.known_to],
        first_token_ids=node.key[:NUM_FIRST_TOKENS],
        token_ids_before=_token_ids_before(node),
    )


def _token_ids_before(node: RadixNode) -> list[int]:
    before: list[int] = []
    above = node.parent
    while above is not None and len(before) < NUM_TOKENS_BEFORE:
        before = above.key[len(before) - NUM_TOKENS_BEFORE :] + before
        above = above.parent
    return before


def _within_bound(tree: RadixTree, max_nodes: int) -> set[RadixNode] | None:
    """Return the nodes to tell, or None for all of them."""
    if tree.num_nodes <= max_nodes:
        return None
    by_scope: dict[Scope, list[RadixNode]] = {}
    sizes: Counter[RadixNode] = Counter()
    nodes = [node for node in tree.nodes() if not node.is_detached]
    for node in reversed(nodes):  # children before parents
        by_scope.setdefault(node.scope, []).append(node)
        sizes[node] += len(node.pages)
        if node.parent is not None:
            sizes[node.parent] += sizes[node]
    share = max(_MIN_NODES_OF_SCOPE, max_nodes // len(by_scope))
    return {
        node
        for members in by_scope.values()
        for node in sorted(members, key=sizes.__getitem__, reverse=True)[:share]
    }
