"""What one connection does about creates, resumes and cancels.

Owns the connection's lanes and the responses that only this connection may build on. Knows the
task group it may start tasks in and the outbox it may fill, and nothing of the socket.

A create goes through these steps, and an error at any of them is one error frame on its lane:

    1. It waits for its lane; there it is counted as in flight.
    2. It becomes a draft: history, prompt, limits (`responses.py`). A create that was sent before,
       recognised by its `event_id`, becomes a replay instead.
    3. The draft is stored and queued, and its log is followed (`generation.py`).
    4. Each log event is projected, stamped with the lane and put into the outbox.

A cancel that comes before step 3 finds nothing in the store; it marks the turn, and step 3 cancels
what it has just stored, so that every create ends with a terminal event.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chatserve.engine.api import EventKind, RequestId
from chatserve.errors import ClientError, NotFound, StoreError, TooManyInFlight
from chatserve.gateway.generation import Answer
from chatserve.gateway.history import find_response
from chatserve.gateway.ids import id_of_frame, new_id
from chatserve.gateway.lanes import Lanes, Turn
from chatserve.gateway.outbox import Outbox
from chatserve.gateway.queue_position import tell_place
from chatserve.gateway.replies import as_client_error
from chatserve.gateway.responses import draft_response, head_of
from chatserve.gateway.services import Services
from chatserve.protocol.client_events import Cancel, Create, Envelope, Resume
from chatserve.protocol.codes import ErrorCode
from chatserve.protocol.errors import describe, error_frame
from chatserve.protocol.events import ResponseProjector, gap_events
from chatserve.store.queue import CancelOutcome
from chatserve.store.responses import ResponseRecord

# Older unstored responses of a connection can no longer be built on.
_MAX_UNSTORED = 256


class Answering:
    """The answers of one connection.

    Owns: its lanes, its resumes and cancels, its unstored responses.
    Used from: the event loop; its tasks run in the connection's task group.
    """

    def __init__(self, services: Services, outbox: Outbox, tasks: asyncio.TaskGroup) -> None:
        self._services = services
        self._outbox = outbox
        self._tasks = tasks
        self._lanes = Lanes()
        self._num_resumes = 0
        self._cancelling: set[str] = set()
        self._connection_nonce = new_id("")
        self._unstored: deque[str] = deque(maxlen=_MAX_UNSTORED)

    def create(self, event: Create, frame: str) -> None:
        """Take a create into its lane, or raise TooManyInFlight."""
        self._check_in_flight()
        turn = Turn(event, RequestId(self._response_id(event, frame)))
        if self._lanes.add(turn):
            self._tasks.create_task(self._run_lane(turn))

    def resume(self, event: Resume) -> None:
        """Start to replay an answer, or raise TooManyInFlight."""
        self._check_in_flight()
        self._num_resumes += 1
        self._tasks.create_task(self._run_resume(event))

    def cancel(self, event: Cancel) -> None:
        """Start to end a response, by its id or by the lane that is busy with it.

        Again does no harm. That there is no such response is reported once the store has said so.

        Raises:
            NotFound: The lane is idle.
            TooManyInFlight: Too many cancels are on their way already.
        """
        turn = self._turn_to_cancel(event)
        if turn is not None:
            turn.is_cancelled = True
        response_id = turn.response_id if turn else event.response_id
        if response_id is None:
            raise NotFound("the lane has no response to cancel", code=ErrorCode.RESPONSE_NOT_FOUND)
        if response_id in self._cancelling:
            return
        if len(self._cancelling) >= self._services.limits.max_in_flight:
            raise TooManyInFlight(
                "too many cancels are on their way", code=ErrorCode.SOCKET_QUEUE_FULL
            )
        self._cancelling.add(response_id)
        cancelling = self._services.generations.cancel(RequestId(response_id))
        self._tasks.create_task(self._await_cancel(response_id, cancelling, event.envelope))

    def report(self, error: ClientError | StoreError, envelope: Envelope) -> None:
        """Put an error frame into the outbox."""
        self._outbox.put_now(
            error_frame(
                as_client_error(error), stream_id=envelope.stream_id, event_id=envelope.event_id
            )
        )

    def _response_id(self, event: Create, frame: str) -> str:
        """Return a fresh id, or for a repeatable create the one of its frame.

        An unstored response belongs to this connection, and so does the repetition of its frame.
        """
        if event.envelope.event_id is None:
            return new_id("resp_")
        scope = "" if event.request.fields.store else self._connection_nonce
        return id_of_frame("resp_", scope + frame)

    def _check_in_flight(self) -> None:
        limit = self._services.limits.max_in_flight
        if self._lanes.num_turns + self._num_resumes >= limit:
            raise TooManyInFlight(
                f"{limit} responses are in flight on this connection, which is the limit",
                code=ErrorCode.SOCKET_QUEUE_FULL,
            )

    async def _run_lane(self, first: Turn) -> None:
        turn: Turn | None = first
        while turn is not None:
            with self._reporting(turn.event.envelope):
                await self._run_turn(turn)
            turn = self._lanes.finish(turn)

    async def _run_turn(self, turn: Turn) -> None:
        envelope = turn.event.envelope
        if envelope.event_id is not None:
            earlier = await self._find(turn.response_id)
            if earlier is not None:
                await self._replay(earlier, -1, envelope)
                return
        draft = await draft_response(
            self._services, turn.event.request, turn.response_id, self._unstored
        )
        if not turn.event.request.fields.store:
            self._unstored.append(turn.response_id)
        async with self._services.generations.start(draft) as answer:
            if turn.is_cancelled:
                await self._services.generations.cancel(turn.response_id)
            await self._send_answer(answer, -1, envelope)

    async def _run_resume(self, event: Resume) -> None:
        with self._reporting(event.envelope):
            record = await self._find(event.response_id)
            if record is None:
                raise _no_response(event.response_id)
            await self._replay(record, event.starting_after, event.envelope)
        self._num_resumes -= 1

    def _turn_to_cancel(self, event: Cancel) -> Turn | None:
        if event.response_id is None:
            return self._lanes.running(event.envelope.stream_id)
        return self._lanes.find(event.response_id)

    async def _await_cancel(
        self,
        response_id: str,
        cancelling: asyncio.Future[CancelOutcome],
        envelope: Envelope,
    ) -> None:
        with self._reporting(envelope):
            outcome = await cancelling
            # A running turn that the store does not know yet is cancelled by its own task.
            if outcome is CancelOutcome.NOT_FOUND and self._lanes.find(response_id) is None:
                raise _no_response(response_id)
        self._cancelling.discard(response_id)

    async def _replay(self, record: ResponseRecord, after: int, envelope: Envelope) -> None:
        """Send what came after an event, then follow; or a snapshot when the log is gone."""
        try:
            async with self._services.generations.resume(record) as answer:
                await self._send_answer(answer, after, envelope)
        except NotFound:
            await self._send_snapshot(record.response_id, after, envelope)

    async def _send_answer(self, answer: Answer, after: int, envelope: Envelope) -> None:
        projector = ResponseProjector(head_of(answer.record))
        telling: asyncio.Task[None] | None = None
        try:
            async for entry in answer.entries:
                event = projector.project(entry.sequence_number, entry.event)
                if entry.sequence_number > after:
                    await self._send(event, envelope)
                if telling is not None:
                    telling.cancel()
                elif entry.event.kind is EventKind.QUEUED:
                    telling = self._tasks.create_task(self._tell_place(answer, envelope))
        finally:
            if telling is not None:
                telling.cancel()

    async def _send_snapshot(self, response_id: str, after: int, envelope: Envelope) -> None:
        record = await self._find(response_id)  # again: it may have ended since it was read
        if record is None or record.outcome is None:
            raise _no_response(response_id)
        for event in gap_events(
            head_of(record), record.output_text, record.outcome, starting_after=after
        ):
            await self._send(event, envelope)

    async def _tell_place(self, answer: Answer, envelope: Envelope) -> None:
        async for place in tell_place(self._services.store.queue, answer):
            update = {
                "type": "chatserve:queue.updated",
                "response_id": answer.record.response_id,
                "position": place.position,
                "eta_ms": place.eta_ms,
            }
            await self._send(update, envelope)

    async def _send(self, event: dict[str, Any], envelope: Envelope) -> None:
        if envelope.stream_id is not None:
            event["stream_id"] = envelope.stream_id
        await self._outbox.put(event)

    async def _find(self, response_id: str) -> ResponseRecord | None:
        return await find_response(self._services.store, response_id, self._unstored)

    @contextmanager
    def _reporting(self, envelope: Envelope) -> Iterator[None]:
        try:
            yield
        except (ClientError, StoreError) as error:
            self.report(error, envelope)


def _no_response(response_id: str) -> NotFound:
    return NotFound(
        f"there is no response {describe(response_id)}",
        code=ErrorCode.RESPONSE_NOT_FOUND,
        param="response_id",
    )
