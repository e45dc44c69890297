"""Scheduler, keeper and cache under random load: whatever happens between two steps, in any order.

A Hypothesis state machine. The fake runner reads every history back through the page tables, so a
page that was shared, copied, remapped or freed wrongly gives another token than the model does
alone. What a request is told to be cached must have been somebody's whom it may know of. Some
12,000 rules and 20,000 steps of the engine are run, and everything is recounted after each.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from unit.cache_helpers import (
    Keeping,
    SchedulerRig,
    generate_alone,
    hash_model,
    make_request,
    num_found,
)
from unit.cache_oracle import common_length

from chatserve.cache.pins import PinLimits, PrefixName
from chatserve.cache.scope import Retention
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.engine.api import FinishReason, KeptPrefix, PrefixState
from chatserve.engine.request import Request, RequestState
from chatserve.errors import InvalidRequest

MODEL = hash_model(2, eos_every=40)

TENANTS = st.sampled_from("ab")
USERS = st.sampled_from(["", "x", "y"])
TOKENS = st.lists(st.integers(3, 4), min_size=1, max_size=16)
INDEX = st.integers(0, 40)
PREAMBLE = PrefixName("", "all")
NAMES = [PREAMBLE, PrefixName("a", "one"), PrefixName("a", "two"), PrefixName("b", "one")]
TTLS = st.sampled_from([None, 0.0, 3.0])


class SchedulerMachine(RuleBasedStateMachine):
    """Sends, aborts, keeps, drops and revokes, between steps of an engine that is never big enough.

    `computed` are the tokens that were computed for each tenant since it was last revoked.
    """

    @initialize(
        page_size=st.sampled_from([1, 2, 4, 16]),
        num_pages=st.integers(4, 14) | st.integers(15, 40),
        seats=st.integers(1, 8),
        budget=st.integers(1, 24),
        prefix_cache=st.sampled_from([True, True, True, False]),
        pinned_share=st.sampled_from([0, 2, 4]),
        cache_scope=st.sampled_from(CacheScope),
    )
    def start(
        self,
        page_size: int,
        num_pages: int,
        seats: int,
        budget: int,
        prefix_cache: bool,
        pinned_share: int,
        cache_scope: CacheScope,
    ) -> None:
        pinned = num_pages // pinned_share if pinned_share else 0
        self.cache_scope = cache_scope
        self.rig = SchedulerRig(
            num_pages=num_pages,
            page_size=page_size,
            max_num_seqs=seats,
            max_num_batched_tokens=budget,
            prefix_cache=prefix_cache,
            next_token=MODEL,
            keeping=Keeping(
                PinLimits(pinned, -(-pinned // 2)), ScopeMap(cache_scope, Retention(ttl_s=50.0))
            ),
        )
        self.room = self.rig.scheduler.config.max_model_len
        self.requests: list[Request] = []
        self.kept: dict[PrefixName, KeptPrefix] = {}
        self.preambles: list[list[int]] = []
        self.computed: dict[str, dict[str, list[int]]] = {"": {}, "a": {}, "b": {}}
        self.num_idle_steps = 0

    # ── Clients ──────────────────────────────────────────────────────────────────────────────

    @rule(tenant=TENANTS, user=USERS, index=INDEX, tokens=TOKENS, num_answers=st.integers(1, 3))
    def send(self, tenant: str, user: str, index: int, tokens: list[int], num_answers: int) -> None:
        """Ask for some answers to one prompt, which may begin with what is kept."""
        begun = [list(prefix.token_ids) for prefix in self.kept.values()]
        begin = [*begun, []][index % (len(begun) + 1)]
        for _ in range(num_answers):
            self._send([*begin, *tokens], tenant, user, max_tokens=1 + index)

    @precondition(lambda self: self.requests)
    @rule(index=INDEX, cut=INDEX, tokens=TOKENS)
    def edit(self, index: int, cut: int, tokens: list[int]) -> None:
        """Go on from anywhere in a conversation, whether its last answer has ended or not."""
        earlier = self.requests[index % len(self.requests)]
        begin = earlier.token_ids[: cut % (earlier.num_tokens + 1)]
        self._send([*begin, *tokens], earlier.tenant, earlier.user, max_tokens=1 + index)

    @precondition(lambda self: self.requests)
    @rule(index=INDEX)
    def abort(self, index: int) -> None:
        request = self.requests[index % len(self.requests)]
        self.rig.scheduler.abort([request.request_id])
        self.rig.scheduler.abort([request.request_id])
        assert request.state is RequestState.FINISHED
        assert request.held is None
        self.num_idle_steps = 0

    # ── The operator ─────────────────────────────────────────────────────────────────────────

    @rule(index=INDEX, tokens=TOKENS, is_pinned=st.booleans(), ttl_s=TTLS)
    def keep(self, index: int, tokens: list[int], is_pinned: bool, ttl_s: float | None) -> None:
        """Register a prompt, or another under its name, or a new preamble below all prompts."""
        name = NAMES[index % len(NAMES)]
        begun = self.kept.get(PREAMBLE)
        begin = begun.token_ids if begun is not None and name != PREAMBLE else ()
        prefix = KeptPrefix(*name, (*begin, *tokens)[: self.room], is_pinned, index % 3, ttl_s)
        self.kept[name] = prefix
        self.preambles += [list(prefix.token_ids)] if name == PREAMBLE else []
        self._keep()

    @precondition(lambda self: self.kept)
    @rule(index=INDEX)
    def drop(self, index: int) -> None:
        del self.kept[list(self.kept)[index % len(self.kept)]]
        self._keep()

    @rule(tenant=TENANTS)
    def revoke(self, tenant: str) -> None:
        self.rig.revoke(tenant)
        self.kept = {name: each for name, each in self.kept.items() if name.tenant != tenant}
        if self.cache_scope is not CacheScope.ALL:  # else nothing is a tenant's own
            self.computed[tenant] = {}
        assert not self.rig.scheduler.requests_of(tenant)
        self.num_idle_steps = 0

    # ── Time ─────────────────────────────────────────────────────────────────────────────────

    @rule(count=st.integers(1, 12), passed_s=st.sampled_from([0.0, 0.0, 1.0, 60.0]))
    def step(self, count: int, passed_s: float) -> None:
        self.rig.now_s += passed_s
        for _ in range(count):
            self._step()

    def teardown(self) -> None:
        """Everything ends, with the tokens it would have alone, and all pages are back."""
        if not hasattr(self, "rig"):
            return
        while self.rig.scheduler.has_work:
            self._step()
        self.rig.step()
        for request in self.requests:
            self._check_answer(request)
        assert self.rig.cache.allocator.num_used == 0
        self.rig.keep()
        assert self.rig.cache.pins.num_pages == 0
        assert self.rig.cache.tree.protected_pages == 0

    @invariant()
    def pinned_are_exactly_the_prefixes_that_are_said_to_be_and_they_are_found(self) -> None:
        for name in NAMES if hasattr(self, "rig") else ():
            report = self.rig.reports.get(name)
            is_pinned = report is not None and report.state is PrefixState.PINNED
            assert (name in self.rig.cache.pins) == is_pinned
            if report is not None and is_pinned:
                token_ids = list(report.prefix.token_ids)
                scopes = self.rig.scheduler.scope_map.path_of(token_ids, name.tenant)
                assert num_found(self.rig.cache, token_ids, scopes) == len(token_ids)

    # ── Steps of the rules ───────────────────────────────────────────────────────────────────

    def _send(self, prompt: list[int], tenant: str, user: str, max_tokens: int) -> None:
        name = f"r{len(self.requests)}"
        request = make_request(name, prompt, max_tokens, tenant=tenant, user=user)
        if request.num_tokens + 1 > self.room:
            with pytest.raises(InvalidRequest, match=f"{request.num_tokens} tokens"):
                self.rig.add(request)
            return
        self.rig.add(request)
        self.requests.append(request)

    def _keep(self) -> None:
        self.rig.keep(*self.kept.values())
        self.num_idle_steps = 0

    def _step(self) -> None:
        """Take a step; whatever is longest is computed in `room` of them, so somebody gets on."""
        had_work, num_events = self.rig.scheduler.has_work, self._num_events
        output = self.rig.step()
        for request in output.admitted:
            self._check_hit(request)
        for run in output.scheduled:
            computed = run.request.token_ids[: run.end]
            self.computed[run.request.tenant][run.request.request_id] = computed
        is_idle = had_work and num_events == self._num_events
        self.num_idle_steps = self.num_idle_steps + 1 if is_idle else 0
        assert self.num_idle_steps <= self.room, "work waits and nobody gets on"

    @property
    def _num_events(self) -> int:
        """Tokens, ends and news of prefixes so far."""
        outputs = self.rig.outputs.values()
        return sum(map(len, outputs)) + len(self.rig.ends) + self.rig.num_news

    def _check_hit(self, request: Request) -> None:
        """What was found is public, or was computed for the same tenant in an earlier step."""
        own = request.tenant if self.cache_scope is not CacheScope.ALL else "ab"
        known = [tokens for tenant in own for tokens in self.computed[tenant].values()]
        known += self.preambles
        assert request.num_cached_tokens is not None
        most = max((common_length(tokens, request.token_ids) for tokens in known), default=0)
        assert request.num_cached_tokens <= most, "tokens were cached that nobody had computed"

    def _check_answer(self, request: Request) -> None:
        prompt = request.token_ids[: request.num_prompt_tokens]
        alone = generate_alone(prompt, request.sampling.max_tokens, MODEL)
        output = self.rig.outputs.get(request.request_id, [])
        reason = self.rig.ends.get(request.request_id)
        is_cut = reason is None or request.num_tokens == self.room
        assert output == (alone[: len(output)] if is_cut else alone)
        assert reason in (None, FinishReason.STOP, FinishReason.LENGTH)


TestSchedulerAgainstModel = SchedulerMachine.TestCase
TestSchedulerAgainstModel.settings = settings(max_examples=300, stateful_step_count=40)
