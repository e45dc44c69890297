"""The step loop's body: schedule, forward, sample, update, text.

Owns the order of a step and the text of every running request. Knows neither threads nor the store;
`EngineThread` drives it. What executes a step is a `Runner`.
"""

import time
from collections.abc import Callable, Iterable, Sequence

from chatserve.cache.held_prefixes import held_prefixes
from chatserve.cache_snapshot import CacheSnapshot
from chatserve.engine.api import (
    EngineStats,
    FinishReason,
    GenerationRequest,
    KeptPrefix,
    PrefixReport,
    RequestId,
    RequestOutput,
)
from chatserve.engine.observation import Observation
from chatserve.engine.prefix_keeper import PrefixKeeper
from chatserve.engine.request import Request
from chatserve.engine.request_text import RequestText
from chatserve.engine.runner import Runner
from chatserve.engine.saved_prefixes import SavedPrefixes
from chatserve.engine.scheduler import Scheduler, SchedulerOutput, TokenResult
from chatserve.errors import ClientError
from chatserve.prefix_digest import MAX_ENTRIES, HeldPrefixes
from chatserve.text.tokenizer import Tokenizer

_MAX_EMPTY_STEPS = 3
"""So many steps without work in a row, while requests wait, are a fault and not bad luck."""


class EngineCore:
    """One engine without a thread of its own.

    Owns: scheduler, runner, kept prefixes, and the text state of each request.
    Used from: the engine thread.

    Args:
        saved: Where pinned prefixes survive a restart, if anywhere.
        clock: The time in seconds that expiry goes by.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        tokenizer: Tokenizer,
        *,
        saved: SavedPrefixes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._scheduler = scheduler
        self._runner = runner
        self._tokenizer = tokenizer
        self._keeper = PrefixKeeper(scheduler, saved)
        self._reports: list[PrefixReport] = []
        self._clock = clock
        self._observation = Observation(scheduler, time.time() - clock())
        self._texts: dict[RequestId, RequestText] = {}
        self._scheduled: SchedulerOutput | None = None
        self._num_steps = 0
        self._num_empty_steps = 0

    @property
    def has_work(self) -> bool:
        return self._scheduler.has_work

    def add(
        self, generation: GenerationRequest, resumed_token_ids: Sequence[int] = ()
    ) -> RequestOutput | None:
        """Queue a request, or return its only output.

        There is nothing to compute for a request that can never run, or that the tokens it resumes
        from had ended already.
        """
        assert generation.tenant, f"{generation.request_id} belongs to nobody"
        request = Request.create(generation, resumed_token_ids)
        text = RequestText(self._tokenizer, request.sampling, generation.begun_token_ids)
        for token_id in resumed_token_ids:
            if not text.stopped:
                text.push(token_id, None)
        if resumed_token_ids:
            reason = FinishReason.STOP if text.stopped else self._scheduler.natural_end(request)
            if reason is not None:
                return RequestOutput(request.request_id, finish_reason=reason)
        try:
            self._scheduler.add(request)
        except ClientError as error:
            return RequestOutput(
                request.request_id, finish_reason=FinishReason.ERROR, error_message=error.message
            )
        self._texts[request.request_id] = text
        return None

    def abort(self, request_ids: Iterable[RequestId]) -> None:
        """End requests without an output; unknown ids are ignored."""
        request_ids = list(request_ids)
        self._scheduler.abort(request_ids)
        for request_id in request_ids:
            self._texts.pop(request_id, None)

    def keep_exactly(self, prefixes: Sequence[KeptPrefix]) -> None:
        """Have these prefixes ready, and no other; what becomes of them is in `take_reports`."""
        self._scheduler.cache.expire(self._clock())  # what is restored is used now
        self._reports += self._keeper.keep_exactly(prefixes)

    def take_reports(self) -> list[PrefixReport]:
        """Return the news of kept prefixes since the last call."""
        reports, self._reports = self._reports, []
        return reports

    def revoke(self, tenant: str) -> list[RequestOutput]:
        """Forget a tenant: its prefixes, its cached pages and what is saved of it.

        Returns the last output of each of its requests, which end here.
        """
        revoked = self._scheduler.requests_of(tenant)
        self.abort(request.request_id for request in revoked)
        self._keeper.forget_tenant(tenant)
        return [
            RequestOutput(
                request.request_id,
                finish_reason=FinishReason.ERROR,
                error_message=f"the access of tenant {tenant!r} was revoked",
            )
            for request in revoked
            if request.generates
        ]

    def begin_step(self) -> list[RequestOutput]:
        """Decide the next step; return the requests that it admits, before they are computed."""
        assert self._scheduled is None, "the step before has not been finished"
        self._scheduler.cache.expire(self._clock())
        self._scheduled = self._scheduler.schedule()
        return [
            RequestOutput(request.request_id, admitted_cached_tokens=request.num_cached_tokens)
            for request in self._scheduled.admitted
            if request.request_id in self._texts
        ]

    def finish_step(self) -> list[RequestOutput]:
        """Compute the step.

        Returns an output for each request that got a token, ended, or is not through its prompt.
        """
        output, self._scheduled = self._scheduled, None
        assert output is not None, "no step has begun"
        sampled = self._runner.execute(output) if output.scheduled else {}
        results = self._scheduler.update(output, sampled)
        self._observation.record_step(output, self._clock())
        self._num_steps += 1
        self._num_empty_steps = 0 if output.scheduled else self._num_empty_steps + 1
        assert self._num_empty_steps < _MAX_EMPTY_STEPS or not self.has_work, (
            f"{self._num_empty_steps} steps computed nothing although requests wait"
        )
        made = [self._to_output(result) for result in results]
        return [each for each in made if each is not None] + self._prefilling(output)

    def _prefilling(self, output: SchedulerOutput) -> list[RequestOutput]:
        return [
            RequestOutput(run.request.request_id, num_computed_tokens=run.end)
            for run in output.scheduled
            if run.request.is_prefilling and run.request.request_id in self._texts
        ]

    def _to_output(self, result: TokenResult) -> RequestOutput | None:
        """Turn a sampled token into text; a stop string found in it ends the request here.

        A warm-up has no output: its end is news of a kept prefix.
        """
        request = result.request
        report = self._keeper.finish(request) if not request.generates else None
        if report is not None:
            self._reports.append(report)
            return None
        if result.token_id is None and result.finish_reason is FinishReason.LENGTH:
            self._texts.pop(request.request_id)
            return RequestOutput(request.request_id, finish_reason=FinishReason.LENGTH)
        if result.token_id is None:
            self._texts.pop(request.request_id)
            return RequestOutput(
                request.request_id,
                finish_reason=FinishReason.ERROR,
                error_message="the model produced logits that are not finite",
            )
        text = self._texts[request.request_id]
        shown = text.push(result.token_id, result.finish_reason)
        reason = FinishReason.STOP if text.stopped else result.finish_reason
        if reason is not None:
            self._scheduler.finish(request, reason)
            self._texts.pop(request.request_id)
        return RequestOutput(request.request_id, (result.token_id,), shown, finish_reason=reason)

    def held_prefixes(self) -> HeldPrefixes:
        """Return the names of what the prefix cache holds; call it between two steps."""
        return held_prefixes(self._scheduler.cache.tree, MAX_ENTRIES)

    def cache_snapshot(self) -> CacheSnapshot:
        """Return what people see of cache and batch; call it between two steps."""
        return self._observation.snapshot(self._clock())

    def stats(self) -> EngineStats:
        """Return a snapshot; call it between two steps."""
        scheduler, allocator = self._scheduler, self._scheduler.cache.allocator
        return EngineStats(
            num_steps=self._num_steps,
            num_pages=allocator.num_pages,
            pages_free=allocator.num_free,
            pages_used=allocator.num_used,
            pages_cached=allocator.num_cached,
            pages_shared=allocator.num_shared,
            pages_pinned=scheduler.cache.pins.num_pages,
            requests_running=len(scheduler.running),
            requests_waiting=len(scheduler.waiting),
            query_tokens=scheduler.num_query_tokens,
            hit_tokens=scheduler.num_hit_tokens,
            preemptions=scheduler.num_preemptions,
            has_prefix_cache=scheduler.cache.enabled,
        )
