"""Has prompts ready before anybody asks: computes, pins, saves and restores named prefixes.

Owns the list of what is to be kept and how far each has come. Decides neither what is registered
nor who may: it is told the whole list whenever it changes, and does what differs.

    registered ──> file fits ──> pages written, pinned                       PINNED (restored)
              └──> no file ──> warm-up: a request of no output ──> pinned    PINNED, saved
                                                              └──> not pinned      CACHED
    taken off the list ──> warm-up aborted, unpinned, cut off the tree, file removed

A prefix that cannot be pinned is refused with the sizes. It stays registered all the same, so its
prompts run and share what they compute.
"""

import logging
from collections.abc import Iterable

from chatserve.cache.pins import PrefixName, Shortfall
from chatserve.cache.scope import Retention, ScopePath
from chatserve.engine.api import (
    GenerationRequest,
    KeptPrefix,
    PrefixReport,
    PrefixState,
    RequestId,
    SamplingParams,
)
from chatserve.engine.prefix_format import PrefixKey
from chatserve.engine.request import Request
from chatserve.engine.saved_prefixes import SavedPrefixes
from chatserve.engine.scheduler import Scheduler
from chatserve.errors import InvalidRequest
from chatserve.wording import counted

logger = logging.getLogger(__name__)


class PrefixKeeper:
    """The kept prefixes of one engine.

    Owns: which prefixes are kept, and their warm-ups. Used from: the engine thread, between steps.

    Args:
        saved: Where pinned prefixes survive a restart; None keeps them in memory only.
    """

    def __init__(self, scheduler: Scheduler, saved: SavedPrefixes | None = None):
        self._scheduler = scheduler
        self._cache = scheduler.cache
        self._saved = saved
        self._kept: dict[PrefixName, KeptPrefix] = {}
        self._begun: dict[PrefixName, ScopePath] = {}
        self._warm_ups: dict[PrefixName, RequestId] = {}
        self._num_warm_ups = 0

    def keep_exactly(self, prefixes: Iterable[KeptPrefix]) -> list[PrefixReport]:
        """Keep these prefixes and no other; return news of those that are new or have changed."""
        wanted = {PrefixName(prefix.tenant, prefix.name): prefix for prefix in prefixes}
        self._cache.pins.bound_tenants(
            {
                prefix.tenant: prefix.tenant_pages
                for prefix in wanted.values()
                if prefix.tenant_pages is not None
            }
        )
        # A tenant's prompt goes before the preamble that it is built on, and comes after it.
        for name in sorted(self._kept, reverse=True):
            if self._kept[name] != wanted.get(name):
                self._drop(name)
        if self._saved is not None:
            self._saved.keep_only([name for name in wanted if wanted[name].is_pinned])
        added = {name for name in wanted if name not in self._kept}
        for name in added:
            self._register(name, wanted[name])
        for name in [name for name in self._kept if self._has_moved(name)]:
            self._drop(name)
            self._register(name, wanted[name])
            added.add(name)
        # First come, first pinned, in the order of the list; the preamble before all.
        order = sorted(
            (name for name in wanted if name in added), key=lambda name: name.tenant != ""
        )
        return [self._begin(name) for name in order]

    def finish(self, request: Request) -> PrefixReport | None:
        """Take in that a request has ended; return news if it was a warm-up."""
        names = [name for name, each in self._warm_ups.items() if each == request.request_id]
        if not names:
            return None
        (name,) = names
        del self._warm_ups[name]
        if request.pin_shortfall is not None:
            return self._report(name, PrefixState.REFUSED, reason=_explain(request.pin_shortfall))
        if request.pin_as is None:
            return self._report(name, PrefixState.CACHED)
        if name not in self._cache.pins:
            # What it was built on was removed while it was computed: once more, from there.
            return self._warm_up(name, self._kept[name])
        self._save(name)
        return self._report(name, PrefixState.PINNED)

    def forget_tenant(self, tenant: str) -> None:
        """Drop all prefixes of a tenant, and whatever else the cache and the disk have of it."""
        for name in [name for name in self._kept if name.tenant == tenant]:
            self._drop(name)
        self._cache.drop_tenant(tenant)
        if self._saved is not None:
            self._saved.forget_tenant(tenant)

    def _has_moved(self, name: PrefixName) -> bool:
        """Tell whether a prefix was begun in other scopes than its prompts have now.

        That happens where another one that it begins with came or went.
        """
        return name in self._begun and self._begun[name] != self._scopes(self._kept[name])

    def _register(self, name: PrefixName, prefix: KeptPrefix) -> None:
        self._kept[name] = prefix
        self._scheduler.scope_map.register(name.tenant, prefix.token_ids, _retention(prefix))

    def _begin(self, name: PrefixName) -> PrefixReport:
        prefix = self._kept[name]
        self._begun[name] = self._scopes(prefix)
        if not self._cache.enabled:
            return self._report(name, PrefixState.REFUSED, reason="the prefix cache is off")
        if prefix.is_pinned:
            scopes = self._begun[name]
            shortfall = self._cache.pin_shortfall(list(prefix.token_ids), scopes, name.tenant)
            if shortfall is not None:
                return self._report(name, PrefixState.REFUSED, reason=_explain(shortfall))
            if self._try_restore(name, scopes):
                return self._report(name, PrefixState.PINNED, is_restored=True)
        return self._warm_up(name, prefix)

    def _warm_up(self, name: PrefixName, prefix: KeptPrefix) -> PrefixReport:
        self._num_warm_ups += 1
        generation = GenerationRequest(
            RequestId(f"warm-up {self._num_warm_ups}"),
            model="",
            prompt_token_ids=prefix.token_ids,
            sampling=SamplingParams(max_tokens=0, seed=0),
            tenant=name.tenant,
        )
        pin_as = name if prefix.is_pinned else None
        try:
            self._scheduler.add(Request.create(generation, pin_as=pin_as))
        except InvalidRequest as error:
            return self._report(name, PrefixState.REFUSED, reason=error.message)
        self._warm_ups[name] = generation.request_id
        return self._report(name, PrefixState.WARMING)

    def _try_restore(self, name: PrefixName, scopes: ScopePath) -> bool:
        """Put a saved prefix into fresh pages and pin it; False if that is not possible.

        Pages of it that are in the tree already, the preamble's say, are shared and not written.
        """
        token_ids = list(self._kept[name].token_ids)
        contents = self._saved.load(self._key(name)) if self._saved is not None else None
        if self._saved is None or contents is None:
            return False
        match = self._cache.tree.match_prefix(token_ids, scopes).with_partial(None, 0)
        admission = self._cache.try_admit(match, len(token_ids), scopes)
        if admission is None:
            return False
        held, num_known = admission.held, len(match.pages)
        self._saved.restore(contents, held.page_ids[num_known:], num_known)
        shortfall = self._cache.pin(name, held, token_ids)
        assert shortfall is None, f"{name} fitted the limits a moment ago: {shortfall}"
        return True

    def _save(self, name: PrefixName) -> None:
        if self._saved is not None:
            self._saved.save(self._key(name), self._cache.pins.pages_of(name))

    def _drop(self, name: PrefixName) -> None:
        prefix, scopes = self._kept.pop(name), self._begun.pop(name)
        warm_up = self._warm_ups.pop(name, None)
        if warm_up is not None:
            self._scheduler.abort([warm_up])
        self._scheduler.scope_map.unregister(name.tenant, prefix.token_ids, _retention(prefix))
        self._cache.drop_prefix(name, list(prefix.token_ids), scopes)
        if self._saved is not None:
            self._saved.forget(name.tenant, name.name)

    def _scopes(self, prefix: KeptPrefix) -> ScopePath:
        return self._scheduler.scope_map.path_of(prefix.token_ids, prefix.tenant)

    def _key(self, name: PrefixName) -> PrefixKey:
        return PrefixKey(name.tenant, name.name, self._kept[name].token_ids)

    def _report(
        self,
        name: PrefixName,
        state: PrefixState,
        *,
        is_restored: bool = False,
        reason: str | None = None,
    ) -> PrefixReport:
        if reason is not None:
            logger.warning(
                "prompt %r of tenant %r is not pinned: %s", name.name, name.tenant, reason
            )
        prefix = self._kept[name]
        num_pages = self._cache.pages_for(len(prefix.token_ids))
        return PrefixReport(prefix, state, num_pages, is_restored, reason)


def _retention(prefix: KeptPrefix) -> Retention:
    ttl_s = prefix.ttl_s if prefix.ttl_s is not None and not prefix.is_pinned else float("inf")
    return Retention(prefix.priority, ttl_s)


def _explain(shortfall: Shortfall) -> str:
    whose = "a tenant may pin" if shortfall.is_tenants else "may be pinned in this pool"
    return (
        f"it needs {counted(shortfall.needed, 'more page')}, with {shortfall.left} left of "
        f"{shortfall.limit} that {whose}"
    )
