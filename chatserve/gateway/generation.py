"""One generation as a gateway sees it: put into the store, then read from its log.

Owns the order of the steps (count the reader, enqueue, follow the log, let the reader go) and what
is undone when one fails. Knows no transport: HTTP handlers and sockets read the same `Answer`.

The one idea: an answer is only ever read inside an `async with`. Entering counts a reader before
anything is stored, leaving takes it back whatever happened, and the table in `readers.py` decides
what that means. So a client that vanishes at any moment leaves nothing behind.
"""

import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

from chatserve.engine.api import GenerationRequest, RequestId
from chatserve.error_codes import ErrorCode
from chatserve.errors import ClientError, Conflict, QueueFull, StoreError
from chatserve.gateway.gateway_metrics import GatewayMetrics
from chatserve.gateway.quotas import KnownQuotas
from chatserve.gateway.rate_limits import refusal_of
from chatserve.gateway.readers import Readers
from chatserve.gateway.router import Router
from chatserve.identity import Owner
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Full, Place
from chatserve.store.limits import Limited
from chatserve.store.log_readers import LogReaders
from chatserve.store.queue import CancelOutcome
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import Abandonment, ResponseRecord
from chatserve.store.sessions import SessionTurn
from chatserve.text.chat_template import ChatMessage

logger = logging.getLogger(__name__)

_MAX_RETRY_AFTER_S = 120
_CLOSE_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Draft:
    """A generation that is decided and not yet stored.

    `started_at` is when its request arrived, on the clock of `time.perf_counter`. `together` counts
    the choices of its body that are still to be started, this one included. `prompt_messages` are
    what a conversation's prompt was made of.
    """

    request: GenerationRequest
    record: ResponseRecord
    turn: SessionTurn | None = None
    started_at: float = 0.0
    together: int = 1
    prompt_messages: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A generation in the store. `place` is where it began to wait, if it was started here."""

    record: ResponseRecord
    entries: AsyncIterator[LogEntry]
    place: Place | None = None


class Generations:
    """Starts, follows and cancels generations.

    Owns: the readers of every answer that is read through this gateway, the cancels on their way.
    Used from: the event loop.
    """

    def __init__(
        self,
        store: Store,
        log_readers: LogReaders,
        metrics: GatewayMetrics,
        quotas: KnownQuotas,
        router: Router,
        *,
        max_queue: int,
        grace_s: float,
    ) -> None:
        self._store = store
        self._log_readers = log_readers
        self._metrics = metrics
        self._quotas = quotas
        self._router = router
        self._max_queue = max_queue
        self._reader_id = secrets.token_hex(8)  # of this gateway, to the others
        self._readers = Readers(
            partial(store.reading.leave, reader=self._reader_id), grace_s=grace_s
        )
        self._cancelling: set[asyncio.Task[CancelOutcome]] = set()
        self._forgetting: set[asyncio.Task[None]] = set()
        self._keeps_stored = False

    @asynccontextmanager
    async def start(self, draft: Draft) -> AsyncIterator[Answer]:
        """Store and enqueue a generation, and read it.

        Raises:
            QueueFull: Too many requests wait already, and its tenant has its share of them.
            RateLimited: It passes what is left of a limit.
            InvalidRequest: It passes a whole limit.
            NotFound, Conflict: Its session is gone or busy, or its id belongs to another create.
            StoreError: The store does not answer.
        """
        request_id = draft.request.request_id
        reservation = await self._quotas.reservation(draft.request, draft.together)
        with self._reading(draft.record), self._router.sending(draft.request) as worker_id:
            # Cancelled or failed here, the request may be in the queue or not. Leaving cancels it
            # in either case, which does nothing if it is not.
            place = await self._store.queue.enqueue(
                draft.request,
                draft.record,
                max_queue=self._max_queue,
                turn=draft.turn,
                reservation=reservation,
                reader=self._reader_id,
                route=worker_id,
            )
            if not isinstance(place, Place):
                self._readers.finish(request_id)
                raise _refusal(place, draft.request.model)
            record = await self._as_stored(draft.record)
            entries = self._timed(self._entries(request_id), draft.started_at)
            async with aclosing(entries):
                yield Answer(record, entries, place)

    @asynccontextmanager
    async def resume(self, record: ResponseRecord) -> AsyncIterator[Answer]:
        """Read an answer that somebody started, from its first event.

        Reading raises NotFound when the log is gone; a generation is never started.
        """
        with self._reading(record):
            if record.abandonment is not Abandonment.RUN and record.outcome is None:
                await self._store.reading.join(record.response_id, reader=self._reader_id)
            async with aclosing(self._entries(record.response_id)) as entries:
                yield Answer(record, entries)

    def cancel(
        self, request_id: RequestId, owner: Owner | None = None
    ) -> asyncio.Future[CancelOutcome]:
        """Begin to end an answer, wherever it is, and return what will have come of it.

        With an owner, somebody else's answer is not found. The terminal event arrives through the
        log. The cancel happens whether or not anybody waits for its outcome, so a client may send
        it and leave.
        """
        cancelling = asyncio.create_task(self._cancel(request_id, owner))
        self._cancelling.add(cancelling)
        cancelling.add_done_callback(self._cancelling.discard)
        return asyncio.shield(cancelling)

    def forget(self, request_ids: Iterable[str]) -> None:
        """Begin to delete responses that nobody can read or build on any more."""
        for request_id in request_ids:
            forgetting = asyncio.create_task(self._forget(RequestId(request_id)))
            self._forgetting.add(forgetting)
            forgetting.add_done_callback(self._forgetting.discard)

    def stop_abandoning(self) -> None:
        """Keep stored answers running from now on, although their readers are about to go."""
        self._readers.drop_grace()

    def end_reading(self, error: ClientError) -> None:
        """End whatever is read through this gateway with an error, for good.

        What is stored goes on, also where the table says abort: it is not its client that left.
        """
        self._keeps_stored = True
        self._log_readers.dismiss(error)

    async def aclose(self) -> None:
        """Let the cancels on their way arrive, for a bounded time."""
        await self._readers.aclose()
        on_their_way = [*self._cancelling, *self._forgetting]
        if on_their_way:
            await asyncio.wait(on_their_way, timeout=_CLOSE_TIMEOUT_S)

    async def _cancel(self, request_id: RequestId, owner: Owner | None) -> CancelOutcome:
        try:
            if owner is not None and owner != await self._store.responses.owner(request_id):
                return CancelOutcome.NOT_FOUND
            return await self._store.queue.cancel(request_id)
        except StoreError as error:
            logger.log(error.log_level, "%s could not be cancelled: %s", request_id, error)
            raise

    async def _forget(self, request_id: RequestId) -> None:
        try:
            await self._store.responses.delete(request_id)
        except StoreError as error:
            logger.log(error.log_level, "%s is kept until it runs out: %s", request_id, error)

    @contextmanager
    def _reading(self, record: ResponseRecord) -> Iterator[None]:
        self._readers.enter(record.response_id, record.abandonment)
        try:
            with self._metrics.readers.track_inprogress():
                yield
        finally:
            if self._keeps_stored and record.request.get("store"):
                self._readers.finish(record.response_id)
            self._readers.leave(record.response_id)

    async def _as_stored(self, record: ResponseRecord) -> ResponseRecord:
        """Return the record that counts: of creates sent twice at once, the first one's."""
        if not record.fingerprint:
            return record
        stored = await self._store.responses.get(record.response_id) or record
        if stored.fingerprint != record.fingerprint:
            self._readers.finish(record.response_id)
            raise duplicate_event_id()
        return stored

    async def _entries(self, request_id: RequestId) -> AsyncGenerator[LogEntry, None]:
        async with aclosing(self._log_readers.follow(request_id)) as entries:
            async for entry in entries:
                if entry.event.kind.is_terminal:
                    self._readers.finish(request_id)
                yield entry

    async def _timed(
        self, entries: AsyncGenerator[LogEntry, None], started_at: float
    ) -> AsyncGenerator[LogEntry, None]:
        """Pass entries on, and note when the reader gets the first text and each one after."""
        last_text_at: float | None = None
        async with aclosing(entries):
            async for entry in entries:
                if entry.event.text:
                    now = time.perf_counter()
                    self._metrics.observe_text(now, last_text_at, started_at)
                    last_text_at = now
                yield entry


def duplicate_event_id() -> Conflict:
    """Return the error of a create whose id was given to another one before."""
    return Conflict(
        "another create has this id already", code=ErrorCode.DUPLICATE_EVENT_ID, param="event_id"
    )


def _refusal(refused: Full | Limited, model: str) -> ClientError:
    return refusal_of(refused) if isinstance(refused, Limited) else _queue_full(refused, model)


def _queue_full(full: Full, model: str) -> QueueFull:
    if full.retry_ms is None:
        retry_after_s, why = _MAX_RETRY_AFTER_S, "none of them has left the queue lately"
    else:
        retry_after_s = min(max(1, math.ceil(full.retry_ms / 1e3)), _MAX_RETRY_AFTER_S)
        why = "that is when half of them will have left at the recent pace"
    return QueueFull(
        f"{full.depth} requests for model {model} wait already; "
        f"try again in {retry_after_s} s: {why}",
        retry_after_s=retry_after_s,
    )
