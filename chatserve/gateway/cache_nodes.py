"""The nodes of a snapshot as one viewer sees them: which, how many share each, what they say.

Owns what is made of a node for somebody who does not see everything. What others share with a
member (the preamble, and with `--cache-scope user` a tenant's prompts) is told without hits and
last use, and with the viewer's own requests as its only sharers. A split of it that nothing of the
viewer's hangs at is somebody else's trace, and is joined again. So the nodes are those that there
would be if nobody else were there.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from chatserve.cache_snapshot import NUM_FIRST_TOKENS, CacheSnapshot, NodeState, RunningRequest
from chatserve.gateway.cache_viewer import Viewer


@dataclass(slots=True)
class ShownNode:
    """A node as it is shown. Mutable while nodes are joined.

    `num_hits` and `idle_s` are None where they would be others'; `first_token_ids` where the viewer
    may not know what the node says.
    """

    node_id: int
    parent_id: int | None
    tenant: str
    user: str | None
    num_tokens: int
    pages: list[int]
    num_sharers: int
    num_hits: int | None
    idle_s: float | None
    is_pinned: bool
    first_token_ids: list[int] | None
    token_ids_before: list[int]
    children: list["ShownNode"] = field(default_factory=list)

    @property
    def is_shared_more_widely(self) -> bool:
        return self.num_hits is None

    def goes_on_as(self, child: "ShownNode") -> bool:
        """Tell whether nothing of the viewer's parts between this node and its only child."""
        return (
            child.is_shared_more_widely
            and (self.tenant, self.user) == (child.tenant, child.user)
            and self.num_sharers == child.num_sharers
            and self.is_pinned == child.is_pinned
            and (self.first_token_ids is None) == (child.first_token_ids is None)
        )

    def absorb(self, child: "ShownNode") -> None:
        """Become one node with the only child."""
        if self.first_token_ids is not None and len(self.first_token_ids) == self.num_tokens:
            both = self.first_token_ids + (child.first_token_ids or [])
            self.first_token_ids = both[:NUM_FIRST_TOKENS]
        self.num_tokens += child.num_tokens
        self.pages = self.pages + child.pages
        self.children = child.children
        for each in self.children:
            each.parent_id = self.node_id


def shown_nodes(
    snapshot: CacheSnapshot, viewer: Viewer, requests: Sequence[RunningRequest]
) -> list[ShownNode]:
    """Return what a viewer sees of the tree, parents first; `requests` are those it may know of."""
    sharers = _count_sharers(snapshot, requests)
    nodes = [_show(each, viewer, sharers[each.node_id]) for each in viewer.visible(snapshot)]
    by_id = {node.node_id: node for node in nodes}
    for node in nodes:
        if node.parent_id is not None:
            by_id[node.parent_id].children.append(node)
    return nodes if viewer.sees_all else _joined([n for n in nodes if n.parent_id is None])


def _count_sharers(
    snapshot: CacheSnapshot, requests: Sequence[RunningRequest]
) -> Counter[int | None]:
    """Count for each node the requests whose prefix goes through it."""
    parents = {node.node_id: node.parent_id for node in snapshot.nodes}
    sharers: Counter[int | None] = Counter()
    for request in requests:
        node_id = request.node_id
        while node_id is not None:
            sharers[node_id] += 1
            node_id = parents[node_id]
    return sharers


def _show(node: NodeState, viewer: Viewer, num_sharers: int) -> ShownNode:
    knows_use = viewer.sees_all or viewer.owns(node.tenant, node.user)
    return ShownNode(
        node_id=node.node_id,
        parent_id=node.parent_id,
        tenant=node.tenant,
        user=node.user,
        num_tokens=node.num_tokens,
        pages=node.pages,
        num_sharers=num_sharers,
        num_hits=node.num_hits if knows_use else None,
        idle_s=node.idle_s if knows_use else None,
        is_pinned=viewer.is_pinned(node),
        first_token_ids=node.first_token_ids if viewer.may_read(node) else None,
        token_ids_before=node.token_ids_before,
    )


def _joined(tops: list[ShownNode]) -> list[ShownNode]:
    """Return the nodes of a tree without others' splits, in an order that does not show them."""
    nodes: list[ShownNode] = []
    stack = sorted(tops, key=_by_id)
    while stack:
        node = stack.pop()
        while node.is_shared_more_widely and len(node.children) == 1:
            (child,) = node.children
            if not node.goes_on_as(child):
                break
            node.absorb(child)
        nodes.append(node)
        stack += sorted(node.children, key=_by_id)
    return nodes


def _by_id(node: ShownNode) -> int:
    return node.node_id
