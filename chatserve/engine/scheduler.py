"""Continuous batching: which tokens of which requests the next step computes.

Owns the two queues and every request in them. Decides in integers; knows neither torch nor text.
One `schedule()` makes a `SchedulerOutput`, one `update()` takes in what was sampled; between the
two nothing else touches the scheduler.

                add                     admit (schedule)                 finish, abort
    ───────────────────> waiting ──────────────────────────> running ─────────────────>
                            ^                                    │
                            └────────────────────────────────────┘
                              preempt: pages are short (schedule)

One step, in this order, under a budget of `max_num_batched_tokens`:
  1. Every running request that decodes gets its one token. Where its page is full and there is no
     other, a running request goes back to waiting, its computed KV into the tree, until there is
     one: the youngest of the tenant that is furthest ahead. The oldest request is never a victim of
     others, so somebody always gets on.
  2. Where running requests still prefill, waiting ones that need little more than what is cached
     are admitted before them, within a part of the budget. A follow-up question would otherwise
     wait for a long prompt that came a moment earlier, and that one hardly notices.
  3. Running requests that prefill get chunks, oldest first.
  4. Waiting requests are admitted, while there are seats, budget and pages for the whole prompt
     (`waiting_line.py` has their order). One that shares more of its uncached prefix with a running
     prefill than the cache knows yet is passed over: that one leads, and its pages will be there
     in a few steps.

Where the prompt of an admitted request goes on as a running one does, inside the page that this one
is writing, it starts from a copy of that page: answers of one prompt part after its last token, not
at the page before.

Invariants:
  1. A request is in exactly one queue, or finished; `held` is set exactly while it runs.
  2. A running request has pages for all its tokens before they are computed, and writes only pages
     that nobody else can see.
  3. If nothing runs and something waits, the next step admits something: `add` refuses what cannot
     fit a pool with all pins in it, and everything else that nobody holds can be evicted.
  4. What a tenant's requests find, and so what a step computes of them, is a function of their own
     and of public tokens, of the lengths of everybody's, and of which of another tenant's prompts
     are alike (`ScopePath`).

Rejected: taking pages chunk by chunk during a prefill (two half-done prefills can starve each other
of their last pages; with the prompt's pages taken at admission only decodes ever ask for more).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PageCopy, PrefixCache
from chatserve.cache.radix_match import Match
from chatserve.cache.scope import ScopePath
from chatserve.cache.scope_map import ScopeMap
from chatserve.engine.api import FinishReason, RequestId
from chatserve.engine.request import Request, RequestState
from chatserve.engine.running_prefix import borrow_tail, shared_whole_pages, will_be_found
from chatserve.engine.tenant_shares import TenantShares
from chatserve.engine.waiting_line import WaitingLine
from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest

_QUICK_PART = 4
"""What part of a step's budget may go to quick requests before prefills that are running."""


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """Limits of a step, and of a request."""

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    eos_token_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """A run of one request's tokens to compute: positions `start` to `start + len(token_ids)`.

    `page_ids` are all pages of the request so far. `samples` says that the run reaches the last
    known token, so that the next one is to be sampled from its logits.
    """

    request: Request
    start: int
    token_ids: list[int]
    page_ids: list[PageId]
    samples: bool

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class SchedulerOutput:
    """One step as a record of integers. `page_copies` run before the forward pass."""

    scheduled: list[ScheduledRequest]
    page_copies: list[PageCopy]
    admitted: list[Request]
    preempted: list[Request]

    @property
    def num_tokens(self) -> int:
        return sum(len(run.token_ids) for run in self.scheduled)


@dataclass(frozen=True, slots=True)
class TokenResult:
    """What a step added to one request.

    `token_id` is None if it is not to generate any, or if its logits were not finite.
    """

    request: Request
    token_id: int | None
    finish_reason: FinishReason | None


class Scheduler:
    """Chooses each step's batch and takes its results in.

    Owns: requests and queues, and through the prefix cache all pages. Used from: the engine thread.
    """

    def __init__(
        self, config: SchedulerConfig, cache: PrefixCache, scope_map: ScopeMap | None = None
    ):
        self.config = config
        self.cache = cache
        self.scope_map = scope_map or ScopeMap()
        self.waiting = WaitingLine()
        self.running: list[Request] = []
        self._shares = TenantShares()
        self.num_preemptions = 0
        self.num_query_tokens = 0
        self.num_hit_tokens = 0
        self._requests: dict[RequestId, Request] = {}

    @property
    def has_work(self) -> bool:
        return bool(self.running or self.waiting)

    def add(self, request: Request) -> None:
        """Queue a request.

        Raises:
            InvalidRequest: It can never run: its prompt leaves no room for one token.
        """
        num_pages = self.cache.allocator.num_pages - self.cache.pins.limits.total_pages
        limit = min(self.config.max_model_len, num_pages * self.cache.page_size)
        if request.num_tokens + request.generates > limit:
            raise InvalidRequest(
                f"the prompt has {request.num_tokens} tokens; with at least one token of output "
                f"that is over the {limit} tokens this engine can hold",
                code=ErrorCode.CONTEXT_LENGTH_EXCEEDED,
            )
        assert request.request_id not in self._requests, f"{request.request_id} was added twice"
        self._requests[request.request_id] = request
        self._shares.enter(request.tenant)
        self.waiting.add(request)

    # ── One step ─────────────────────────────────────────────────────────────────────────────

    def schedule(self) -> SchedulerOutput:
        """Choose the next step's tokens. An output without any is legal: there is nothing to do."""
        step = _Step(self.config.max_num_batched_tokens)
        for request in list(self.running):  # 1
            if request.state is RequestState.RUNNING and not request.is_prefilling:
                self._schedule_decode(request, step)
        step.settled = list(self.running)
        prefilling = [request for request in step.settled if request.is_prefilling]
        if prefilling:
            quick_tokens = self.config.max_num_batched_tokens // _QUICK_PART
            self._admit_waiting(step, quick_tokens=quick_tokens)  # 2
        for request in prefilling:  # 3
            if step.budget > 0:
                self._schedule_run(request, step)
        self._admit_waiting(step)  # 4
        self.waiting.count_step()
        return SchedulerOutput(step.scheduled, step.page_copies, step.admitted, step.preempted)

    def _schedule_decode(self, request: Request, step: "_Step") -> None:
        if step.budget <= 0:
            return
        assert request.held is not None
        while not self.cache.try_grow(request.held, request.num_tokens):
            victim = self._victim()
            self._preempt(victim, step)
            if victim is request:
                return
        self._schedule_run(request, step)

    def _schedule_run(self, request: Request, step: "_Step") -> None:
        assert request.held is not None
        start = request.num_computed_tokens
        end = min(request.num_tokens, start + step.budget)
        self.cache.assert_writable(request.held, start, end)
        step.budget -= end - start
        step.scheduled.append(
            ScheduledRequest(
                request=request,
                start=start,
                token_ids=request.token_ids[start:end],
                page_ids=list(request.held.page_ids),
                samples=request.generates and end == request.num_tokens,
            )
        )

    def _victim(self) -> Request:
        """Return the youngest running request of the tenant furthest ahead, the oldest spared."""
        return max(
            enumerate(self.running[1:] or self.running),
            key=lambda each: (self._shares.served(each[1].tenant), each[0]),
        )[1]

    def _preempt(self, request: Request, step: "_Step") -> None:
        step.unschedule(request)
        self.running.remove(request)
        self._retire(request)
        request.state = RequestState.WAITING
        self.num_preemptions += 1
        self.waiting.add(request)
        step.preempted.append(request)

    def _admit_waiting(self, step: "_Step", *, quick_tokens: int | None = None) -> None:
        """Admit in order; given `quick_tokens`, until one would take more than is left of them."""
        if not self.waiting or not self._has_room(step):
            return
        for request in self.waiting.in_order(self._num_uncached_tokens):
            if not self._has_room(step):
                break
            scopes = self.scopes_of(request)
            match = self.cache.match_prefix(request.token_ids, scopes)
            if self._has_leader(request, scopes, match.num_tokens(self.cache.page_size)):
                continue
            if self.cache.enabled:
                # Only from those that were here before this step: what the others have of their
                # page is itself still to be copied.
                match = borrow_tail(step.settled, request, match, scopes, self.cache.page_size)
            if quick_tokens is not None:
                num_tokens = request.num_tokens - match.num_tokens(self.cache.page_size)
                if num_tokens > min(quick_tokens, step.budget):
                    break
                quick_tokens -= num_tokens
            if not self._try_admit(request, match, scopes, step):
                break  # nobody overtakes a request that waits for pages
            self.waiting.remove(request)

    def _has_room(self, step: "_Step") -> bool:
        return len(self.running) < self.config.max_num_seqs and step.budget > 0

    def scopes_of(self, request: Request) -> ScopePath:
        """Return whose each token of a request is, by what is registered now."""
        return self.scope_map.path_of(request.token_ids, request.tenant, request.user)

    def _num_uncached_tokens(self, request: Request) -> int:
        match = self.cache.match_prefix(request.token_ids, self.scopes_of(request))
        return request.num_tokens - match.num_tokens(self.cache.page_size)

    def _has_leader(self, request: Request, scopes: ScopePath, num_known_tokens: int) -> bool:
        """Tell whether a running prefill is about to compute pages that `request` could use."""
        size = self.cache.page_size
        return any(
            shared_whole_pages(leader, request, scopes, size) * size > num_known_tokens
            for leader in self.running
            if self.cache.enabled and leader.is_prefilling and will_be_found(leader)
        )

    def _try_admit(self, request: Request, match: Match, scopes: ScopePath, step: "_Step") -> bool:
        admission = self.cache.try_admit(match, request.num_tokens, scopes)
        if admission is None:
            return False
        request.held = admission.held
        request.num_computed_tokens = admission.num_cached_tokens
        request.state = RequestState.RUNNING
        if admission.copy is not None:
            step.page_copies.append(admission.copy)
        if request.num_cached_tokens is None:
            request.num_cached_tokens = min(admission.num_cached_tokens, request.num_prompt_tokens)
            self.num_query_tokens += request.num_tokens
            self.num_hit_tokens += admission.num_cached_tokens
            step.admitted.append(request)
        self.running.append(request)
        self._schedule_run(request, step)
        return True

    def update(
        self, output: SchedulerOutput, sampled: Mapping[RequestId, int | None]
    ) -> list[TokenResult]:
        """Take a step's results in: progress, full pages into the tree, tokens, natural ends."""
        results: list[TokenResult] = []
        for run in output.scheduled:
            request = run.request
            token_id = sampled[request.request_id] if run.samples else None
            if run.samples and token_id is None:
                self.finish(request, FinishReason.ERROR)
                results.append(TokenResult(request, None, FinishReason.ERROR))
                continue
            assert request.held is not None
            request.num_computed_tokens = run.end
            self.cache.commit(request.held, request.token_ids, run.end)
            self._shares.charge(request.tenant, len(run.token_ids) - run.samples, run.samples)
            if request.num_uncomputed_tokens == 0 and not request.generates:
                self.finish(request, FinishReason.LENGTH)
                results.append(TokenResult(request, None, FinishReason.LENGTH))
            if token_id is not None:
                request.token_ids.append(token_id)
                reason = self.natural_end(request)
                if reason is not None:
                    self.finish(request, reason)
                results.append(TokenResult(request, token_id, reason))
        return results

    def natural_end(self, request: Request) -> FinishReason | None:
        """Return why the request's last token ends it, or None."""
        sampling, token_id = request.sampling, request.token_ids[-1]
        if token_id in sampling.stop_token_ids:
            return FinishReason.STOP
        if token_id in self.config.eos_token_ids and not sampling.ignore_eos:
            return FinishReason.STOP
        if request.num_output_tokens >= sampling.max_tokens:
            return FinishReason.LENGTH
        if request.num_tokens >= self.config.max_model_len:
            return FinishReason.LENGTH
        return None

    # ── Ends ─────────────────────────────────────────────────────────────────────────────────

    def finish(self, request: Request, reason: FinishReason) -> None:
        """End a request between two steps and let its pages go. Idempotent: the first reason stays.

        What it computed stays in the tree, except after an error: then it may be wrong.
        """
        if request.state is RequestState.FINISHED:
            return
        if request.state is RequestState.RUNNING:
            self.running.remove(request)
            assert request.held is not None
            if reason is FinishReason.ERROR:
                self.cache.release(request.held)
            else:
                self._retire(request)
        else:
            self.waiting.remove(request)
        request.state = RequestState.FINISHED
        request.held = None
        self._shares.leave(request.tenant)
        del self._requests[request.request_id]

    def abort(self, request_ids: Iterable[RequestId]) -> None:
        """End requests by a client's will; ids that are unknown or finished are ignored."""
        for request_id in request_ids:
            request = self._requests.get(request_id)
            if request is not None:
                self.finish(request, FinishReason.ABORT)

    def requests_of(self, tenant: str) -> list[Request]:
        """Return a tenant's requests that have not ended, warm-ups too."""
        return [request for request in self._requests.values() if request.tenant == tenant]

    def _retire(self, request: Request) -> None:
        assert request.held is not None
        can_pin = request.num_uncomputed_tokens == 0 and will_be_found(request)
        if request.pin_as is not None and can_pin:
            shortfall = self.cache.pin(request.pin_as, request.held, request.token_ids)
            request.pin_shortfall = shortfall
        else:
            self.cache.retire(request.held, request.token_ids, request.num_computed_tokens)
        request.held = None
        request.num_computed_tokens = 0

    def check_invariants(self) -> None:
        """Recount queues and pages. Exact and expensive; between steps only."""
        assert all(request.state is RequestState.RUNNING for request in self.running)
        assert all(request.state is RequestState.WAITING for request in self.waiting)
        assert len(self.running) + len(self.waiting) == len(self._requests)
        assert all(request.held is None for request in self.waiting)
        self.waiting.check_invariants()
        self.cache.check_invariants([r.held for r in self.running if r.held is not None])


class _Step:
    """The step being put together."""

    def __init__(self, budget: int):
        self.budget = budget
        self.scheduled: list[ScheduledRequest] = []
        self.page_copies: list[PageCopy] = []
        self.admitted: list[Request] = []
        self.settled: list[Request] = []  # that were running before this step admitted any
        self.preempted: list[Request] = []

    def unschedule(self, request: Request) -> None:
        """Take back what was given to a request in this step: it loses its pages."""
        given = [run for run in self.scheduled if run.request is request]
        self.budget += sum(len(run.token_ids) for run in given)
        self.scheduled = [run for run in self.scheduled if run.request is not request]
