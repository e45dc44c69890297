"""Which scope each token of a prompt belongs to.

Owns the registered prefixes (the operator's preamble, the tenants' named prompts) as token ids, and
the rule that makes spans of a prompt. Knows neither pages nor requests; registering computes
nothing.

Public are exactly the leading ids of a prompt that equal those of a registered preamble, however
the prompt came about. Behind them, the leading ids that equal a registered prompt of the same
tenant are the tenant's. The rest is the tenant's too, or with `CacheScope.USER` the user's alone.
So a tenant cannot make anything public, and what it may find depends on its own prompt and on
public tokens only.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from itertools import chain, takewhile

from chatserve.cache.scope import NO_RETENTION, PUBLIC, Owner, Retention, Scope, ScopePath, Span


class CacheScope(StrEnum):
    """Who shares the pages of a conversation."""

    USER = "user"  # nobody but the same user of the same tenant
    TENANT = "tenant"  # whoever belongs to the tenant
    ALL = "all"  # everybody: for a service whose tenants may know of each other


class ScopeMap:
    """The registered prefixes, and the spans of prompts.

    Owns: the token ids of what is registered. Used from: the engine thread.

    Args:
        cache_scope: Who shares the pages of a conversation.
        retention: How long the pages of a conversation are kept.
    """

    def __init__(
        self,
        cache_scope: CacheScope = CacheScope.TENANT,
        retention: Retention = NO_RETENTION,
    ):
        self.cache_scope = cache_scope
        self._retention = retention
        self._prefixes: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        self._retentions: dict[tuple[str, tuple[int, ...]], list[Retention]] = {}

    def register(self, tenant: str, token_ids: Sequence[int], retention: Retention) -> None:
        """Make a prefix known; the tenant is empty for the operator's preamble."""
        prefix = tuple(token_ids)
        assert prefix, "a registered prefix has tokens"
        if (tenant, prefix) not in self._retentions:
            insort(self._prefixes[tenant], prefix)
        self._retentions.setdefault((tenant, prefix), []).append(retention)

    def unregister(self, tenant: str, token_ids: Sequence[int], retention: Retention) -> None:
        """Take one `register` back."""
        prefix = tuple(token_ids)
        retentions = self._retentions[tenant, prefix]
        retentions.remove(retention)
        if not retentions:
            del self._retentions[tenant, prefix]
            self._prefixes[tenant].remove(prefix)

    def path_of(self, token_ids: Sequence[int], tenant: str, user: str = "") -> ScopePath:
        """Return the spans of a prompt, or of a registered prefix (then the user is empty)."""
        spans: list[Span] = []
        for owner in dict.fromkeys(("", tenant)):
            end, retention = self._known(owner, token_ids)
            if end > (spans[-1].end if spans else 0):
                spans.append(Span(self._scope_of_prompts(owner), end, retention))
        spans.append(Span(self._scope_of_conversation(tenant, user), retention=self._retention))
        return ScopePath(tuple(spans), Owner(tenant, user))

    def _scope_of_prompts(self, tenant: str) -> Scope:
        return PUBLIC if self.cache_scope is CacheScope.ALL else Scope(tenant)

    def _scope_of_conversation(self, tenant: str, user: str) -> Scope:
        """Return who shares a conversation."""
        if self.cache_scope is CacheScope.USER and tenant:
            return Scope.of_user(tenant, user)
        return self._scope_of_prompts(tenant)

    def _known(self, owner: str, token_ids: Sequence[int]) -> tuple[int, Retention]:
        """Return how many leading ids equal those of a prefix of `owner`, and its retention.

        Among sorted runs, those that share most with another stand next to where that belongs.
        """
        prefixes = self._prefixes.get(owner, [])
        prompt = tuple(token_ids)
        index = bisect_left(prefixes, prompt)
        beside = prefixes[max(0, index - 1) : index + 1]
        best = max((_common_length(prefix, prompt) for prefix in beside), default=0)
        if best == 0:
            return 0, NO_RETENTION
        start = prompt[:best]
        alike = takewhile(lambda prefix: prefix[:best] == start, prefixes[index:])
        before = takewhile(lambda prefix: prefix[:best] == start, reversed(prefixes[:index]))
        known = [self._retentions[owner, prefix] for prefix in (*alike, *before)]
        return best, max(chain.from_iterable(known))


def _common_length(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Return how many leading ids agree, by bisection over comparisons of whole runs."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
