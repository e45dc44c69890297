"""Which nodes of the tree begin with the same tokens, though they share no page.

Owns the comparison. Only whole pages are shared: of a scope's nodes that stand under the same one,
each differs from the others within its first page. What they have in common of it is copied when a
request finds it, and each node has it for itself. Nodes that the viewer may not read are left out.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from chatserve.gateway.cache_nodes import ShownNode


class Alike(NamedTuple):
    """With how many tokens a node begins that another one begins with, too."""

    num_tokens: int
    node_id: int


def nodes_alike(nodes: Iterable[ShownNode]) -> dict[int, Alike]:
    """Return for each node that has one the node that begins most like it."""
    siblings: dict[object, list[tuple[list[int], int]]] = defaultdict(list)
    for node in nodes:
        if node.first_token_ids is not None:
            place = (node.parent_id, node.tenant, node.user)
            siblings[place].append((node.first_token_ids, node.node_id))
    most: dict[int, Alike] = {}
    for group in siblings.values():
        # In the order of their tokens, those that have the most in common are next to each other.
        for (first, first_id), (second, second_id) in pairwise(sorted(group)):
            num_tokens = _num_common(first, second)
            for node_id, other_id in ((first_id, second_id), (second_id, first_id)):
                known = most.get(node_id)
                if num_tokens and (known is None or num_tokens > known.num_tokens):
                    most[node_id] = Alike(num_tokens, other_id)
    return most


def _num_common(first: list[int], second: list[int]) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
