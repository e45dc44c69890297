"""Which prefixes the radix tree holds, by name.

Owns the walk over the tree and the hashes that its nodes remember. Decides nothing: what is made of
the names is told in `chatserve.prefix_digest`.

Every page is hashed once, by the first walk after it came into the tree; from then on a walk only
gathers. Detached nodes cannot be found, and are not named. A partly filled page has no name.
"""

from collections import defaultdict

from chatserve.cache.radix_node import RadixNode
from chatserve.cache.radix_tree import RadixTree
from chatserve.prefix_digest import HASH_BYTES, HeldPrefixes, continue_hashes


def held_prefixes(tree: RadixTree, max_prefixes: int) -> HeldPrefixes:
    """Return the names of what can be found in a tree, at most about `max_prefixes` of them."""
    stride = 1
    while tree.evictable_pages + tree.protected_pages > stride * max_prefixes:
        stride *= 2
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    stack = [(child, 0, b"") for child in tree.root.children]
    while stack:
        node, depth, before = stack.pop()
        hashes = hashes_of(node, before, tree.page_size)
        found[node.scope.tenant].append(_every(stride, hashes, depth))
        if node.children:
            below, last = depth + len(node.pages), hashes[-HASH_BYTES:]
            stack += [(child, below, last) for child in node.children]
    by_tenant = {tenant: b"".join(runs) for tenant, runs in found.items()}
    return HeldPrefixes(tree.page_size, stride, by_tenant)


def hashes_of(node: RadixNode, before: bytes, page_size: int) -> bytes:
    """Return the hashes of a node's whole pages; `before` is the last one above it."""
    num_known, num_whole = len(node.prefix_hashes) // HASH_BYTES, len(node.key) // page_size
    if num_known < num_whole:
        last = node.prefix_hashes[-HASH_BYTES:] or before
        new = node.key[num_known * page_size : num_whole * page_size]
        node.prefix_hashes += continue_hashes(last, new, page_size)
    return node.prefix_hashes


def _every(stride: int, hashes: bytes, depth: int) -> bytes:
    """Return the hashes of those pages whose number from the prompt's beginning `stride` divides.

    Args:
        depth: How many pages come before the first of these.
    """
    if stride == 1:
        return hashes
    pages = memoryview(hashes).cast("Q")
    return pages[-(depth + 1) % stride :: stride].tobytes()
