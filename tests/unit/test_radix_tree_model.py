"""The prefix cache against an oracle that compares every path of the tree token by token.

A Hypothesis state machine over allocator, tree, scopes and pins, with a vocabulary of two, so that
prefixes collide all the time. What the cache finds must be the longest prefix there is for whoever
asks, in pages that hold exactly those tokens, computed by nobody whose tokens they may not know.
Some 15,000 rules are run, and everything is recounted after each.
"""

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from unit.cache_helpers import make_request
from unit.cache_oracle import (
    PageShadow,
    Path,
    common_length,
    live_paths,
    longest_visible,
    page_keys,
    pages_by_tenant,
    pinned_prefixes,
)

from chatserve.cache.pins import PinLimits, PrefixName
from chatserve.cache.prefix_cache import Admission, PrefixCache
from chatserve.cache.scope import PUBLIC, Retention, ScopePath
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.engine.request import Request
from chatserve.engine.running_prefix import borrow_tail

UNKNOWN_TOKEN = 9
PREAMBLE = PrefixName("", "all")

Owner = tuple[str, str]
OWNERS = st.sampled_from([("a", "x"), ("b", "x"), ("a", "y")])
NAMES = st.sampled_from(
    [PREAMBLE, PrefixName("a", "one"), PrefixName("a", "two"), PrefixName("b", "one")]
)
TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=14)
INDEX = st.integers(0, 30)
RETENTIONS = st.builds(
    Retention, priority=st.integers(0, 2), ttl_s=st.sampled_from([float("inf"), 0.0, 2.0, 7.0])
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A registered prefix; `scopes` are those of its tokens while it is pinned."""

    token_ids: list[int]
    retention: Retention
    scopes: ScopePath | None = None


class PrefixCacheMachine(RuleBasedStateMachine):
    """Does in any order what the scheduler and the keeper of prefixes do to the cache."""

    @initialize(
        page_size=st.sampled_from([1, 2, 4, 16]),
        num_pages=st.integers(3, 40),
        cache_scope=st.sampled_from(CacheScope),
        retention=RETENTIONS,
        limits=st.builds(PinLimits, st.integers(0, 16), st.integers(1, 6)),
    )
    def start(
        self,
        page_size: int,
        num_pages: int,
        cache_scope: CacheScope,
        retention: Retention,
        limits: PinLimits,
    ) -> None:
        self.page_size, self.cache_scope = page_size, cache_scope
        self.cache = PrefixCache(num_pages, page_size, pin_limits=limits)
        self.scope_map = ScopeMap(cache_scope, retention)
        self.shadow = PageShadow(num_pages, page_size)
        self.running: list[Request] = []
        self.fresh: list[Request] = []
        self.kept: dict[PrefixName, Kept] = {}
        self.now_s = 0.0

    # ── Requests ─────────────────────────────────────────────────────────────────────────────

    @rule(owner=OWNERS, tokens=TOKENS, index=INDEX)
    def admit(self, owner: Owner, tokens: list[int], index: int) -> None:
        """Admit a prompt that may begin with a registered prefix, whosever it is."""
        self._admit(self._begun(index, tokens), owner)

    @rule(owner=OWNERS, tokens=TOKENS, index=INDEX)
    def serve(self, owner: Owner, tokens: list[int], index: int) -> None:
        """Take a request from its admission to its end."""
        request = self._admit(self._begun(index, tokens), owner)
        if request is not None:
            self._compute(request, request.num_tokens)
            self._retire(request)

    @precondition(lambda self: self.running)
    @rule(index=INDEX, cut=INDEX, tokens=TOKENS)
    def fork(self, index: int, cut: int, tokens: list[int]) -> None:
        """Find what a running request has computed, whether the tree has it already or not."""
        source = self._running(index)
        assert source.held is not None
        prompt = [*source.token_ids[: cut % (source.num_tokens + 1)], *tokens]
        request = make_request("fork", prompt, tenant=source.tenant, user=source.user)
        scopes = self._scopes(request)
        match = self.cache.match_prefix(prompt, scopes)
        open_end = min(source.num_computed_tokens, source.held.scopes.shared_end(scopes))
        expected = common_length(source.token_ids[:open_end], prompt[:-1])

        match = borrow_tail(self._settled(), request, match, scopes, self.page_size)

        is_known = source in self._settled() and not source.held.node.is_detached
        assert match.num_tokens(self.page_size) >= expected or not is_known
        admission = self.cache.try_admit(match, request.num_tokens, scopes)
        if admission is not None:
            self._take_in(request, admission)

    @precondition(lambda self: self.running)
    @rule(index=INDEX, count=st.integers(1, 16))
    def compute(self, index: int, count: int) -> None:
        self._compute(self._running(index), count)

    @precondition(lambda self: self.running)
    @rule(index=INDEX, more=TOKENS)
    def grow(self, index: int, more: list[int]) -> None:
        request = self._running(index)
        assert request.held is not None
        if self.cache.try_grow(request.held, request.num_tokens + len(more)):
            request.token_ids += more

    @precondition(lambda self: self.running)
    @rule(index=INDEX)
    def retire(self, index: int) -> None:
        self._retire(self._running(index))

    @precondition(lambda self: self.running)
    @rule(index=INDEX)
    def release(self, index: int) -> None:
        request = self._running(index)
        assert request.held is not None
        self.running.remove(request)
        self.cache.release(request.held)
        self.cache.release(request.held)

    # ── Prefixes ─────────────────────────────────────────────────────────────────────────────

    @rule(
        name=NAMES,
        index=INDEX,
        tokens=TOKENS | st.just([]),
        retention=RETENTIONS,
        is_pinned=st.booleans(),
    )
    def keep(
        self,
        name: PrefixName,
        index: int,
        tokens: list[int],
        retention: Retention,
        is_pinned: bool,
    ) -> None:
        """Register a prefix; a preamble beside which others are kept would change their scopes."""
        token_ids = self._begun(index, tokens)
        if not token_ids or name in self.kept or (name == PREAMBLE and self.kept):
            return
        self.scope_map.register(name.tenant, token_ids, retention)
        self.kept[name] = Kept(token_ids, retention)
        if is_pinned:
            self._pin(name)

    @precondition(lambda self: any(kept.scopes is None for kept in self.kept.values()))
    @rule(index=INDEX)
    def pin(self, index: int) -> None:
        unpinned = [name for name, kept in self.kept.items() if kept.scopes is None]
        self._pin(unpinned[index % len(unpinned)])

    @rule(name=NAMES)
    def unpin(self, name: PrefixName) -> None:
        self.cache.unpin(name)
        self.cache.unpin(name)
        if name in self.kept:
            self.kept[name] = replace(self.kept[name], scopes=None)

    @precondition(lambda self: self.kept)
    @rule(index=INDEX)
    def drop_prefix(self, index: int) -> None:
        """Take a prefix off the list, and with the preamble whatever is built on it."""
        name = list(self.kept)[index % len(self.kept)]
        for each in list(self.kept) if name == PREAMBLE else [name]:
            self._drop_prefix(each)

    @rule(tenant=st.sampled_from("ab"))
    def drop_tenant(self, tenant: str) -> None:
        foreign = self._paths_of_others(tenant)
        for name in [name for name in self.kept if name.tenant == tenant]:
            self._drop_prefix(name)

        self.cache.drop_tenant(tenant)

        assert self.cache_scope is CacheScope.ALL or self._paths_of_others(tenant) == foreign
        assert not [path for path in live_paths(self.cache.tree) if path[-1].scope.tenant == tenant]

    @rule(passed_s=st.sampled_from([0.0, 1.0, 3.0, 8.0]))
    def expire(self, passed_s: float) -> None:
        self.now_s += passed_s
        nodes = list(self.cache.tree.nodes())
        due = [each for each in nodes if each.expires_s <= self.now_s and not each.lock_ref]

        self.cache.expire(self.now_s)

        assert not set(due) & set(self.cache.tree.nodes())

    @rule(num_pages=st.integers(1, 40))
    def evict(self, num_pages: int) -> None:
        """Take pages that nobody needs, as another request does; what is held stays."""
        tokens = [UNKNOWN_TOKEN] * min(num_pages, self.cache.allocator.num_pages) * self.page_size
        request = self._admit(tokens, ("b", "x"))
        if request is not None:
            assert request.held is not None
            self.running.remove(request)
            self.cache.release(request.held)

    # ── What must always be so ───────────────────────────────────────────────────────────────

    @invariant()
    def every_count_is_right_and_every_page_holds_what_its_holders_computed(self) -> None:
        if not hasattr(self, "cache"):
            return
        held = [request.held for request in self.running if request.held is not None]
        self.cache.check_invariants(held)
        for request in self._settled():
            self.shadow.check(request)
        tree = self.cache.tree
        reachable = {id(node) for each in held for node in tree.path_to(each.node)}
        assert all(id(node) in reachable for node in tree.nodes() if node.is_detached)

    @invariant()
    def pinned_prefixes_are_found_to_their_last_token(self) -> None:
        for kept in self.kept.values() if hasattr(self, "cache") else ():
            if kept.scopes is not None:
                match = self.cache.match_prefix([*kept.token_ids, UNKNOWN_TOKEN], kept.scopes)
                assert match.num_tokens(self.page_size) == len(kept.token_ids)

    def teardown(self) -> None:
        """Everything that is let go can be given out again."""
        if not hasattr(self, "cache"):
            return
        for request in list(self.running):
            self._retire(request)
        for name in list(self.kept):
            self.cache.unpin(name)
        self.cache.check_invariants([])
        assert self.cache.allocator.num_used == 0
        num_tokens = self.cache.allocator.num_pages * self.page_size
        assert self._admit([UNKNOWN_TOKEN] * num_tokens, ("b", "x")) is not None

    # ── Steps of the rules ───────────────────────────────────────────────────────────────────

    def _running(self, index: int) -> Request:
        return self.running[index % len(self.running)]

    def _settled(self) -> list[Request]:
        """Return the requests whose pages hold what they were admitted with."""
        return [request for request in self.running if request not in self.fresh]

    def _scopes(self, request: Request) -> ScopePath:
        return self.scope_map.path_of(request.token_ids, request.tenant, request.user)

    def _begun(self, index: int, token_ids: list[int]) -> list[int]:
        """Return tokens behind a registered prefix, or behind none."""
        begin = [*(kept.token_ids for kept in self.kept.values()), []]
        return [*begin[index % len(begin)], *token_ids]

    def _admit(self, token_ids: list[int], owner: Owner) -> Request | None:
        """Admit a request if there are pages; there are if nobody holds them."""
        request = make_request("r", token_ids, tenant=owner[0], user=owner[1])
        scopes = self._scopes(request)
        match = self.cache.match_prefix(token_ids, scopes)
        paths = live_paths(self.cache.tree)
        known = longest_visible(paths, token_ids[:-1], scopes, self.page_size)
        assert match.num_tokens(self.page_size) == known
        num_available = self.cache.num_available_pages
        admission = self.cache.try_admit(match, request.num_tokens, scopes)
        if admission is None:
            assert self.cache.pages_for(request.num_tokens) > num_available
            return None
        self._take_in(request, admission)
        return request

    def _take_in(self, request: Request, admission: Admission) -> None:
        request.held = admission.held
        request.num_computed_tokens = admission.num_cached_tokens
        if admission.copy is not None:
            self.shadow.copy(admission.copy, request)
        self.running.append(request)
        self.fresh.append(request)

    def _compute(self, request: Request, count: int) -> None:
        """Write tokens, after the copies of all that were admitted in the same step."""
        assert request.held is not None
        self.shadow.run_copies()
        self.fresh = []
        start = request.num_computed_tokens
        end = min(request.num_tokens, start + count)
        self.cache.assert_writable(request.held, start, end)
        self.shadow.write(request, end)
        request.num_computed_tokens = end
        self.cache.commit(request.held, request.token_ids, end)

    def _retire(self, request: Request) -> None:
        assert request.held is not None
        self.running.remove(request)
        self.cache.retire(request.held, request.token_ids, request.num_computed_tokens)

    def _pin(self, name: PrefixName) -> None:
        """Compute and pin a registered prefix; a refusal is one that the recount agrees to."""
        request = self._admit(self.kept[name].token_ids, (name.tenant, ""))
        if request is None:
            return
        assert request.held is not None
        scopes, fits = request.held.scopes, self._fits(name, request)
        self._compute(request, request.num_tokens)
        self.running.remove(request)

        shortfall = self.cache.pin(name, request.held, request.token_ids)

        assert (shortfall is None) == fits
        if fits:
            self.kept[name] = replace(self.kept[name], scopes=scopes)

    def _fits(self, name: PrefixName, request: Request) -> bool:
        """Recount whether both limits allow a prefix to be pinned beside the others."""
        others = [
            page_keys(kept.token_ids, kept.scopes, self.page_size)
            for kept in self.kept.values()
            if kept.scopes is not None
        ]
        own = page_keys(request.token_ids, self._scopes(request), self.page_size)
        pages, limits = pages_by_tenant(pinned_prefixes([*others, own])), self.cache.pins.limits
        if pages.total() > limits.total_pages:
            return False
        return not name.tenant or pages[name.tenant] <= limits.tenant_pages

    def _drop_prefix(self, name: PrefixName) -> None:
        """Drop a prefix: it is not found any more, unless by a pin's grace; others lose nothing."""
        kept = self.kept.pop(name)
        scopes = self.scope_map.path_of(kept.token_ids, name.tenant)
        foreign = self._paths_of_others(name.tenant)
        self.scope_map.unregister(name.tenant, kept.token_ids, kept.retention)

        self.cache.drop_prefix(name, kept.token_ids, scopes)

        is_alone = name.tenant and self.cache_scope is not CacheScope.ALL
        assert self._paths_of_others(name.tenant) == foreign or not is_alone
        pinned = [each.token_ids for each in self.kept.values() if each.scopes is not None]
        is_pinned = any(each[: len(kept.token_ids)] == kept.token_ids for each in pinned)
        is_public = scopes.span_at(len(kept.token_ids) - 1).scope == PUBLIC
        if not is_pinned and not (is_public and is_alone):
            match = self.cache.match_prefix([*kept.token_ids, UNKNOWN_TOKEN], scopes)
            assert match.num_tokens(self.page_size) < len(kept.token_ids)

    def _paths_of_others(self, tenant: str) -> set[Path]:
        """Return what is found behind public pages or in other tenants', however it is cut."""
        return {
            path[:end]
            for path in live_paths(self.cache.tree)
            if path[-1].scope.tenant != tenant
            for end in range(1, len(path) + 1)
        }


TestPrefixCacheAgainstOracle = PrefixCacheMachine.TestCase
TestPrefixCacheAgainstOracle.settings = settings(max_examples=300, stateful_step_count=50)
