"""One answer on its way into the log: engine outputs in, numbered events out.

Owns an answer's numbering while this worker holds its lease, its timings, and what is not written
yet. Does no input or output and reads no clock: the caller says what time it is.

Events wait in `pending` until `drain` takes them for one append. A delta that is still waiting
grows instead of a second one being made, so that a slow store coalesces deltas by itself; once
drained it has a number and is never touched again.

A request that does not generate still gets one token from the engine, which is how it says that
the prompt is computed. Nothing of that token leaves this module.
"""

from dataclasses import dataclass, field, replace
from statistics import median

from chatserve.engine.api import (
    EventKind,
    FinishReason,
    GenerationRequest,
    LogEvent,
    Outcome,
    Prefill,
    RequestId,
    RequestOutput,
    Timings,
    Usage,
)
from chatserve.error_codes import ErrorCode
from chatserve.store.claim import Claim
from chatserve.store.response_log import Append, FinalAnswer

_OPENING = (EventKind.IN_PROGRESS, EventKind.ITEM_ADDED, EventKind.PART_ADDED)
_CLOSING = (EventKind.TEXT_DONE, EventKind.PART_DONE)
_FIRST_OPENING_SEQUENCE = 2  # after CREATED and QUEUED, which the gateway wrote


@dataclass(slots=True)
class TokenClock:
    """When the stages of an answer were reached, in milliseconds since its request was queued.

    Each is reached once: what an earlier worker has told of is given, and stays as it was told.
    `num_tokens` are all tokens of the answer, `gaps_s` the pauses between those of this worker.
    """

    claimed_s: float
    queued_ms: float
    admitted_ms: float | None = None
    first_token_ms: float | None = None
    num_tokens: int = 0
    last_token_ms: float | None = None
    gaps_s: list[float] = field(default_factory=list)

    def note_admission(self, now_s: float) -> None:
        if self.admitted_ms is None:
            self.admitted_ms = self._ms_at(now_s)

    def count_token(self, now_s: float) -> None:
        self.note_admission(now_s)
        at_ms = self._ms_at(now_s)
        if self.first_token_ms is None:
            self.first_token_ms = at_ms
        if self.last_token_ms is not None:
            self.gaps_s.append((at_ms - self.last_token_ms) / 1e3)
        self.last_token_ms = at_ms
        self.num_tokens += 1

    def timings(self) -> Timings:
        queue_ms, ttft_ms = self.admitted_ms, self.first_token_ms
        if queue_ms is None or ttft_ms is None:
            return Timings(queue_ms=queue_ms)
        decode_ms = self.last_token_ms - ttft_ms if self.last_token_ms is not None else 0.0
        return Timings(
            queue_ms=queue_ms,
            prefill_ms=round(ttft_ms - queue_ms, 2),
            ttft_ms=ttft_ms,
            itl_p50_ms=round(1e3 * median(self.gaps_s), 2) if self.gaps_s else None,
            tok_s=round(1e3 * (self.num_tokens - 1) / decode_ms, 2) if decode_ms > 0 else None,
        )

    def _ms_at(self, now_s: float) -> float:
        """Return a time as it is told. No stage is before the last one, whatever clocks say."""
        at_ms = round(self.queued_ms + 1e3 * (now_s - self.claimed_s), 2)
        before = (self.admitted_ms, self.first_token_ms, self.last_token_ms)
        return max(at_ms, *(each for each in before if each is not None), 0.0)


class Answer:
    """The log's view of one request that this worker runs.

    Owns: numbering, text so far, pending events. Used from: the event loop.
    """

    def __init__(self, claim: Claim, now_s: float, *, has_prefix_cache: bool = True):
        self.claim = claim
        self._has_prefix_cache = has_prefix_cache
        start = claim.logged_start
        self.clock = TokenClock(
            now_s,
            claim.queued_ms,
            admitted_ms=start.queue_ms,
            first_token_ms=start.ttft_ms,
            num_tokens=len(claim.logged_token_ids),
        )
        self.is_finished = False
        self._next_sequence = claim.next_sequence
        self._text = claim.logged_text
        self._token_ids = list(claim.logged_token_ids)
        # What the reader's prompt had to be computed for is told once. A worker that takes over
        # finds other pages, and may compute the prompt again: that is its matter.
        self._cached_tokens = start.cached_tokens
        self._found_tokens = 0
        self._is_ttft_logged = start.ttft_ms is not None
        self._prefill: Prefill | None = None
        self._pending: list[LogEvent] = []
        self._delta_text = ""
        self._delta_token_ids: list[int] = []
        self._final: FinalAnswer | None = None

    @property
    def engine_request(self) -> GenerationRequest:
        """The request under the id that the engine knows it by.

        A request may be claimed again by the worker that lost it. Each claim is another request to
        the engine, so that what is still on its way of the old one is not taken for the new one's.
        """
        request = self.claim.request
        engine_id = RequestId(f"{request.request_id}#{self.claim.epoch}")
        return replace(request, request_id=engine_id)

    @property
    def deadline_s(self) -> float | None:
        """When the answer must have ended, on the caller's clock; None for no such time."""
        timeout_ms = self.claim.request.timeout_ms
        if timeout_ms is None:
            return None
        return self.clock.claimed_s + (timeout_ms - self.claim.queued_ms) / 1e3

    @property
    def prefill(self) -> Prefill | None:
        """How far the prompt is computed, for the first time or again; None where it is."""
        return self._prefill

    def take(self, output: RequestOutput, now_s: float) -> None:
        """Take in what one step did for the request. Ignored once the answer has ended."""
        if self.is_finished:
            return
        if output.admitted_cached_tokens is not None:
            self._admit(output.admitted_cached_tokens, now_s)
        if output.num_computed_tokens is not None:
            self._note_prefill(output.num_computed_tokens)
        for _ in output.token_ids:
            self._prefill = None
            self.clock.count_token(now_s)
        if self.claim.request.generates:
            self._token_ids += output.token_ids
            self._delta_token_ids += output.token_ids
            self._text += output.text
            self._delta_text += output.text
        if output.finish_reason is not None:
            self.finish(output.finish_reason, output.error_message)

    def exceed_deadline(self, now_s: float) -> None:
        """End the answer because its time is over; what there is of it stays. Idempotent."""
        timeout_ms = self.claim.request.timeout_ms
        assert timeout_ms is not None, f"{self.claim.request.request_id} has no deadline"
        lasted_s = self.claim.queued_ms / 1e3 + now_s - self.clock.claimed_s
        self.finish(
            FinishReason.ERROR,
            f"the answer was not complete {lasted_s:.1f} s after its request was queued, "
            f"its timeout is {timeout_ms / 1e3:g} s",
            error_code=ErrorCode.DEADLINE_EXCEEDED,
        )

    def finish(
        self,
        reason: FinishReason,
        error_message: str | None = None,
        *,
        error_code: str = ErrorCode.GENERATION_FAILED,
    ) -> None:
        """End the answer; what was held back until now is written with the end. Idempotent."""
        if self.is_finished:
            return
        self.is_finished, self._prefill = True, None
        self._close_delta()
        if reason in (FinishReason.STOP, FinishReason.LENGTH):
            if self.claim.request.generates:
                self._open(len(_OPENING))  # an empty answer is an answer: it gets its empty message
            else:
                reason = FinishReason.STOP
        is_error = reason is FinishReason.ERROR
        outcome = Outcome(
            finish_reason=reason,
            usage=self._usage(),
            timings=self.clock.timings(),
            error_code=error_code if is_error else None,
            error_message=error_message if is_error else None,
        )
        if self._num_logged_or_pending >= _FIRST_OPENING_SEQUENCE + len(_OPENING):
            self._pending += [LogEvent(kind) for kind in _CLOSING]
            self._pending.append(LogEvent(EventKind.ITEM_DONE, outcome=outcome))
        self._pending.append(LogEvent(outcome.terminal_kind, outcome=outcome))
        self._final = FinalAnswer(self._text, tuple(self._token_ids), outcome)

    def drain(self) -> Append | None:
        """Return what is to be appended next, now numbered, or None if there is nothing."""
        self._close_delta()
        if not self._pending:
            return None
        events, self._pending = tuple(self._pending), []
        first_sequence = self._next_sequence
        self._next_sequence += len(events)
        return Append(
            request_id=self.claim.request.request_id,
            epoch=self.claim.epoch,
            first_sequence=first_sequence,
            events=events,
            final=self._final,
        )

    def _usage(self) -> Usage:
        num_prompt_tokens = len(self.claim.request.prompt_token_ids)
        cached = min(self._cached_tokens, num_prompt_tokens)
        has_written = self._has_prefix_cache and self.clock.first_token_ms is not None
        return Usage(
            input_tokens=num_prompt_tokens,
            cached_tokens=cached,
            cache_write_tokens=num_prompt_tokens - cached if has_written else 0,
            output_tokens=len(self._token_ids),
        )

    def _admit(self, cached_tokens: int, now_s: float) -> None:
        if self.clock.admitted_ms is None:
            self._cached_tokens = cached_tokens
        self._found_tokens = cached_tokens
        self.clock.note_admission(now_s)
        self._open(1)

    def _note_prefill(self, num_computed_tokens: int) -> None:
        """Take note of a prompt that is not computed yet, and of what of the answer follows it."""
        total = len(self.claim.request.prompt_token_ids) + len(self._token_ids)
        cached = min(self._found_tokens, total)
        self._prefill = Prefill(cached, max(0, min(num_computed_tokens, total) - cached), total)

    @property
    def _num_logged_or_pending(self) -> int:
        return self._next_sequence + len(self._pending)

    def _open(self, count: int) -> None:
        """See to it that the first `count` opening events are in the log or on their way."""
        done = self._num_logged_or_pending - _FIRST_OPENING_SEQUENCE
        for kind in _OPENING[max(0, done) : count]:
            event = LogEvent(kind)
            if kind is EventKind.IN_PROGRESS:
                num_prompt_tokens = len(self.claim.request.prompt_token_ids)
                event = replace(
                    event,
                    input_tokens=num_prompt_tokens,
                    cached_tokens=self._cached_tokens,
                    queue_ms=self.clock.admitted_ms,
                )
            self._pending.append(event)

    def _close_delta(self) -> None:
        """Turn waiting text into an event. Ids without text wait for the text they belong to."""
        if self._delta_text:
            self._open(len(_OPENING))
            token_ids = tuple(self._delta_token_ids)
            ttft_ms = None if self._is_ttft_logged else self.clock.first_token_ms
            self._is_ttft_logged = True
            self._pending.append(
                LogEvent(EventKind.DELTA, self._delta_text, token_ids, ttft_ms=ttft_ms)
            )
            self._delta_text, self._delta_token_ids = "", []
