"""Runs claimed requests on the engine and writes their answers into their logs.

Owns the open answers and the only task that appends. One round trip carries whatever all of them
have; while it is under way the next deltas gather, so that a loaded store gets fewer and larger
writes and an idle one every token at once. No timer is involved.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence

from chatserve.engine.answer import Answer
from chatserve.engine.api import (
    FinishReason,
    GenerationRequest,
    Prefill,
    RequestId,
    RequestOutput,
)
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.errors import StoreError
from chatserve.store.claim import Claim
from chatserve.store.response_log import Append, ResponseLog
from chatserve.wording import counted

logger = logging.getLogger(__name__)

_RETRY_DELAYS_S = (0.05, 0.1, 0.2, 0.5, 1.0)


class ResponseWriter:
    """The writing end of the response log for one worker.

    Owns: open answers, and the engine's work on them. Used from: the event loop.

    Args:
        log: Where answers go.
        engine: What runs the requests; told to abort those whose answer ends before they do.
        on_room: Called when answers have left, so that there is room for others.
    """

    def __init__(
        self,
        log: ResponseLog,
        metrics: WorkerMetrics,
        *,
        engine: EngineThread,
        on_room: Callable[[], None],
    ):
        self._log = log
        self._metrics = metrics
        self._engine = engine
        self._on_room = on_room
        self._answers: dict[RequestId, Answer] = {}
        self._running: dict[RequestId, Answer] = {}  # by the engine's ids
        self._timers: dict[RequestId, asyncio.TimerHandle] = {}  # of those with a deadline
        self._wake = asyncio.Event()

    @property
    def open_request_ids(self) -> list[RequestId]:
        return list(self._answers)

    @property
    def open_requests(self) -> list[GenerationRequest]:
        return [answer.claim.request for answer in self._answers.values()]

    @property
    def prefills(self) -> dict[RequestId, Prefill]:
        """How far the prompts are that take more than one step."""
        prefills = {name: answer.prefill for name, answer in self._answers.items()}
        return {name: prefill for name, prefill in prefills.items() if prefill is not None}

    def open(self, claim: Claim) -> None:
        """Run a claimed request and write its answer.

        Its id may be open still: the lease was lost and won again before that was noticed.
        """
        self.drop([claim.request.request_id])
        has_prefix_cache, now_s = self._engine.stats().has_prefix_cache, time.monotonic()
        answer = Answer(claim, now_s, has_prefix_cache=has_prefix_cache)
        self._answers[claim.request.request_id] = answer
        if answer.deadline_s is not None:
            self._timers[claim.request.request_id] = asyncio.get_running_loop().call_later(
                answer.deadline_s - now_s, self._end_overdue, answer
            )
        request = answer.engine_request
        self._running[request.request_id] = answer
        self._engine.add(request, claim.logged_token_ids)

    def take(self, outputs: Iterable[RequestOutput]) -> None:
        """Take in a step's results; requests that are not open any more are ignored."""
        now_s = time.monotonic()
        for output in outputs:
            answer = self._running.get(output.request_id)
            if answer is not None:
                answer.take(output, now_s)
            if output.finish_reason is not None:
                self._running.pop(output.request_id, None)
        self._wake.set()

    def cancel(self, request_ids: Iterable[RequestId]) -> None:
        """End answers by a client's will; the terminal event does not wait for the running step."""
        for request_id in request_ids:
            answer = self._answers.get(request_id)
            if answer is not None:
                answer.finish(FinishReason.ABORT)
                self._abort(answer)
        self._wake.set()

    def drop(self, request_ids: Iterable[RequestId]) -> None:
        """Forget answers, of which nothing more is to be written."""
        for request_id in request_ids:
            timer = self._timers.pop(request_id, None)
            if timer is not None:
                timer.cancel()
            answer = self._answers.pop(request_id, None)
            if answer is not None:
                self._abort(answer)

    def _end_overdue(self, answer: Answer) -> None:
        """End an answer at its deadline; its pages are free when the running step has ended."""
        answer.exceed_deadline(time.monotonic())
        self._abort(answer)
        self._wake.set()

    def _abort(self, answer: Answer) -> None:
        """Stop the engine's work on an answer, unless it has ended there."""
        engine_id = answer.engine_request.request_id
        if self._running.pop(engine_id, None) is not None:
            self._engine.abort([engine_id])

    async def run(self) -> None:
        """Write until cancelled. What a cancelled write had drained may be in the log or not."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write everything that waits, in one round trip."""
        drained = [(answer, answer.drain()) for answer in self._answers.values()]
        written = [(answer, append) for answer, append in drained if append is not None]
        if not written:
            return
        accepted = await self._append([append for _, append in written])
        results = list(zip(written, accepted, strict=True))
        lost = [answer for (answer, _), is_accepted in results if not is_accepted]
        closed = [answer for answer, append in written if append.final is not None]
        for answer in closed:
            self._observe(answer)
        for answer in [*lost, *closed]:
            self._drop_if_open(answer)
        if lost:
            logger.warning("%s taken over by another worker", counted(len(lost), "answer"))
        if lost or closed:
            self._on_room()

    async def _append(self, appends: Sequence[Append]) -> list[bool]:
        """Append, again and again while the store is away: a repetition is never doubled."""
        attempt = 0
        while True:
            try:
                return await self._log.append(appends)
            except StoreError as error:
                delay_s = _RETRY_DELAYS_S[min(attempt, len(_RETRY_DELAYS_S) - 1)]
                logger.log(
                    error.log_level, "%s not stored yet: %s", counted(len(appends), "answer"), error
                )
                attempt += 1
                await asyncio.sleep(delay_s)

    def _drop_if_open(self, answer: Answer) -> None:
        """Forget an answer, but not another one of its id: it was lost, and won again since."""
        request_id = answer.claim.request.request_id
        if self._answers.get(request_id) is answer:
            self.drop([request_id])

    def _observe(self, answer: Answer) -> None:
        ttft_ms = answer.clock.timings().ttft_ms
        if ttft_ms is not None:
            self._metrics.ttft.observe(ttft_ms / 1e3)
        for gap_s in answer.clock.gaps_s:
            self._metrics.itl.observe(gap_s)
