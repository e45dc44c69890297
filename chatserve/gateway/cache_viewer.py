"""Who looks at the cache, and what of a snapshot is there for them.

Owns the rule, and no more: what is made of it is in `cache_view.py`. A member sees what belongs to
the tenant, or to the user where `--cache-scope user` keeps users apart, and of what is shared more
widely those nodes that lead there or whose tokens it knows. An operator sees everything but what it
says: the first words of a node are for those whose requests contained them, operators or not.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from chatserve.cache_snapshot import CacheSnapshot, NodeState
from chatserve.identity import Identity


@dataclass(frozen=True, slots=True)
class Viewer:
    """One viewer of one snapshot. `only_tenant` is what an operator narrows the view to."""

    identity: Identity
    by_user: bool
    only_tenant: str | None = None

    @property
    def sees_all(self) -> bool:
        return self.identity.is_operator

    @property
    def user(self) -> str | None:
        """The user whom the view is narrowed to, where a tenant's users are kept apart."""
        return self.identity.user if self.by_user else None

    def owns(self, tenant: str, user: str | None) -> bool:
        """Tell whether something belongs to exactly whom the viewer stands for."""
        return (tenant, user) == (self.identity.tenant, self.user)

    def is_mine(self, tenant: str, user: str | None) -> bool:
        """Tell whether something is the viewer's, or is shared by the users of its tenant."""
        return tenant == self.identity.tenant and (not user or self.user in (None, user))

    def may_see(self, tenant: str, user: str | None) -> bool:
        """Tell whether the viewer may know of a request, or of what steps did."""
        if not self.sees_all:
            return self.is_mine(tenant, user)
        return self.only_tenant in (None, tenant)

    def may_read(self, node: NodeState) -> bool:
        """Tell whether the viewer knows what a node says, or may."""
        tenant, user = self.identity.tenant, self.identity.user
        return any(owner in (["", ""], [tenant, ""], [tenant, user]) for owner in node.known_to)

    def is_pinned(self, node: NodeState) -> bool:
        """Tell whether a node is pinned, as far as the viewer may know."""
        mine = {"", self.identity.tenant}
        return bool(node.pinned_by) and (self.sees_all or not mine.isdisjoint(node.pinned_by))

    def visible(self, snapshot: CacheSnapshot) -> list[NodeState]:
        """Return the nodes that the viewer may know of, parents first."""
        if self.sees_all:
            wanted = ("", self.only_tenant)
            return [n for n in snapshot.nodes if self.only_tenant is None or n.tenant in wanted]
        known = [node for node in snapshot.nodes if self._knows(node)]
        return _with_parents(snapshot.nodes, known)

    def _knows(self, node: NodeState) -> bool:
        if node.tenant:
            return self.is_mine(node.tenant, node.user)
        mine = self.identity.tenant
        said = any(tenant == mine and self.is_mine(tenant, user) for tenant, user in node.known_to)
        return said or ["", ""] in node.known_to


def _with_parents(nodes: Iterable[NodeState], wanted: Iterable[NodeState]) -> list[NodeState]:
    """Return these nodes and whatever is above them, in the order of all."""
    by_id = {node.node_id: node for node in nodes}
    kept: set[int] = set()
    for node in wanted:
        above: NodeState | None = node
        while above is not None and above.node_id not in kept:
            kept.add(above.node_id)
            above = by_id[above.parent_id] if above.parent_id is not None else None
    return [node for node in by_id.values() if node.node_id in kept]
