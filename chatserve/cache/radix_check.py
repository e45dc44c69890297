"""Recounting the radix tree's invariants, and drawing it. For tests and debugging.

Owns nothing. The numbers are those of the invariants in `radix_tree.py`.
"""

from chatserve.cache.children import Children, Edge
from chatserve.cache.radix_node import RadixNode
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import PUBLIC


def check_tree(tree: RadixTree) -> None:
    """Recount everything from the nodes. Exact and expensive."""
    evictable = protected = count = 0
    tree.root.children.check_invariants()  # 3
    for node in tree.nodes():
        count += 1
        _check_node(tree, node)
        if node.lock_ref:
            protected += len(node.pages)
        else:
            evictable += len(node.pages)
    assert (evictable, protected) == (tree.evictable_pages, tree.protected_pages)  # 6
    assert count == tree.num_nodes, f"{count} nodes, {tree.num_nodes} counted"
    live = [node for node in tree.nodes() if not node.is_detached]
    assert {id(node) for node in live if node.is_evictable} <= tree.queued_for_eviction()  # 7
    assert {id(node) for node in live if node.expires_s < float("inf")} <= tree.queued_for_expiry()


def _check_node(tree: RadixTree, node: RadixNode) -> None:
    size = tree.page_size
    assert node.key, "a node has no tokens"
    assert not node.children or len(node.key) % size == 0, render(tree)  # 1
    assert len(node.pages) == -(-len(node.key) // size), render(tree)  # 2
    assert node.edge == Edge(node.scope, tuple(node.key[:size]))
    node.children.check_invariants()  # 3
    assert all(child.parent is node for child in node.children)
    assert node.parent is not None
    wider = node.parent.scope
    assert wider in (PUBLIC, node.scope) or (wider.tenant, wider.user) == (
        node.scope.tenant,
        "",
    )  # 4
    assert node.lock_ref >= sum(child.lock_ref for child in node.children), render(tree)  # 5
    assert not node.is_detached or node.lock_ref > 0, render(tree)  # 8


def render(tree: RadixTree) -> str:
    """Draw the tree, one node a line: tokens, pages, scope, locks."""
    lines: list[str] = []
    tops = [*_sorted(tree.root.children), *tree.detached]
    stack = [(node, 0) for node in reversed(tops)]
    while stack:
        node, depth = stack.pop()
        owner = "/".join(node.scope) if node.scope != PUBLIC else "public"
        lines.append(
            f"{'  ' * depth}{node.key} pages={node.pages} {owner} lock_ref={node.lock_ref}"
            f"{' detached' if node.is_detached else ''}"
        )
        stack += [(child, depth + 1) for child in reversed(_sorted(node.children))]
    return "\n".join(lines)


def _sorted(children: Children) -> list[RadixNode]:
    return sorted(children, key=lambda child: child.edge)
