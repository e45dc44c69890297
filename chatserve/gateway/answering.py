"""What one connection does about creates, resumes and cancels.

Owns the connection's lanes and the responses that only this connection may build on. Knows the
task group it may start tasks in and the outbox it may fill, and nothing of the socket.

A create goes through these steps, and an error at any of them is one error frame on its lane:

    1. It waits for its lane; there it is counted as in flight.
    2. Its answer is started, or found if it was sent before (`creating.py`).
    3. Each event (`response_events.py`) is stamped with the lane and put into the outbox.

A cancel that comes before step 2 finds nothing in the store; it marks the turn, and step 2 cancels
what it has just stored, so that every create ends with a terminal event.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any

from chatserve.engine.api import RequestId
from chatserve.error_codes import ErrorCode
from chatserve.errors import ClientError, NotFound, StoreError, TooManyInFlight
from chatserve.gateway.creating import answer_to
from chatserve.gateway.generation import Answer
from chatserve.gateway.history import find_response, no_response
from chatserve.gateway.ids import id_of_event, new_id
from chatserve.gateway.in_flight import InFlight
from chatserve.gateway.lanes import Lanes, Turn
from chatserve.gateway.outbox import Outbox
from chatserve.gateway.rate_limits import limits_event
from chatserve.gateway.replies import as_client_error
from chatserve.gateway.response_events import events_of
from chatserve.gateway.responses import Order
from chatserve.gateway.services import Services
from chatserve.identity import Identity
from chatserve.protocol.client_events import Cancel, Create, Envelope, Resume
from chatserve.protocol.errors import error_frame
from chatserve.store.limits import NO_ALLOWANCES, Allowances
from chatserve.store.queue import CancelOutcome

# Older unstored responses of a connection can no longer be built on.
_MAX_UNSTORED = 256


class Answering:
    """The answers of one connection.

    Owns: its lanes, its resumes and cancels, its unstored responses.
    Used from: the event loop; its tasks run in the connection's task group.
    """

    def __init__(
        self, services: Services, outbox: Outbox, tasks: InFlight, identity: Identity
    ) -> None:
        self._services = services
        self._outbox = outbox
        self._tasks = tasks
        self._identity = identity
        self._lanes = Lanes()
        self._num_resumes = 0
        self._cancelling: set[str] = set()
        self._connection_nonce = new_id("")
        self._unstored: deque[str] = deque(maxlen=_MAX_UNSTORED)

    def end(self) -> None:
        """Forget what only this connection could have built on."""
        self._services.generations.forget(self._unstored)

    def create(self, event: Create) -> None:
        """Take a create into its lane, or raise TooManyInFlight."""
        self._check_in_flight()
        turn = Turn(event, RequestId(self._response_id(event)))
        if self._lanes.add(turn):
            self._tasks.create_task(self._run_lane(turn))

    def resume(self, event: Resume) -> None:
        """Start to replay an answer, or raise TooManyInFlight."""
        self._check_in_flight()
        self._num_resumes += 1
        self._tasks.create_task(self._run_resume(event))

    def cancel(self, event: Cancel) -> None:
        """Start to end a response: by its id, by its create, or by the lane that is busy with it.

        Again does no harm. That there is no such response is reported once the store has said so.

        Raises:
            NotFound: The lane is idle, or no such create waits or runs.
            TooManyInFlight: Too many cancels are on their way already.
        """
        turn = self._turn_to_cancel(event)
        if turn is not None:
            turn.is_cancelled = True
            if not self._lanes.is_running(turn):  # it will end as soon as it begins
                return
        response_id = turn.response_id if turn else event.response_id
        if response_id is None:
            raise NotFound("there is no response to cancel", code=ErrorCode.RESPONSE_NOT_FOUND)
        if response_id in self._cancelling:
            return
        if len(self._cancelling) >= self._services.limits.max_in_flight:
            raise TooManyInFlight(
                "too many cancels are on their way", code=ErrorCode.SOCKET_QUEUE_FULL
            )
        self._cancelling.add(response_id)
        cancelling = self._services.generations.cancel(RequestId(response_id), self._identity.owner)
        self._tasks.create_task(self._await_cancel(response_id, cancelling, event.envelope))

    def report(self, error: ClientError | StoreError, envelope: Envelope) -> None:
        """Put an error frame into the outbox."""
        self._outbox.put_now(
            error_frame(
                as_client_error(error), stream_id=envelope.stream_id, event_id=envelope.event_id
            )
        )

    def _response_id(self, event: Create) -> str:
        """Return a fresh id, or for a repeatable create the one that it always has.

        An unstored response belongs to this connection, and so does the repetition of its create.
        """
        event_id = event.envelope.event_id
        if event_id is None:
            return new_id("resp_", self._identity.tenant)
        scope = "" if event.request.fields.store else self._connection_nonce
        return id_of_event("resp_", self._identity, event_id, scope)

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
        order = Order(
            turn.event.request,
            turn.response_id,
            self._identity,
            own=self._unstored,
            is_repeatable=turn.event.envelope.event_id is not None,
        )
        async with answer_to(self._services, order) as answer:
            if not turn.event.request.fields.store:
                self._unstored.append(turn.response_id)
            if turn.is_cancelled:
                await self._services.generations.cancel(turn.response_id)
            allowances = answer.place.allowances if answer.place else NO_ALLOWANCES
            await self._tell_limits(allowances, turn.event.envelope)
            await self._send_answer(answer, -1, turn.event.envelope)
            if allowances:
                left = await self._services.quotas.left(self._identity)
                await self._tell_limits(left, turn.event.envelope)

    async def _run_resume(self, event: Resume) -> None:
        with self._reporting(event.envelope):
            record = await find_response(
                self._services.store, event.response_id, self._identity, self._unstored
            )
            if record is None:
                raise no_response(event.response_id)
            async with self._services.generations.resume(record) as answer:
                await self._send_answer(answer, event.starting_after, event.envelope)
        self._num_resumes -= 1

    def _turn_to_cancel(self, event: Cancel) -> Turn | None:
        if event.response_id is not None:
            return self._lanes.find(event.response_id)
        if event.create_event_id is not None:
            return self._lanes.find_create(event.create_event_id)
        return self._lanes.running(event.envelope.stream_id)

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
                raise no_response(response_id)
        self._cancelling.discard(response_id)

    async def _send_answer(self, answer: Answer, after: int, envelope: Envelope) -> None:
        send = partial(self._send, envelope=envelope)
        with self._services.updates.telling(answer, after, send) as hear:
            async with aclosing(events_of(self._services.store, answer, after)) as events:
                async for event in events:
                    await send(event)
                    hear(event)

    async def _tell_limits(self, allowances: Allowances, envelope: Envelope) -> None:
        if allowances:
            await self._send(limits_event(allowances), envelope)

    async def _send(self, event: dict[str, Any], envelope: Envelope) -> None:
        if envelope.stream_id is not None:
            event["stream_id"] = envelope.stream_id
        await self._outbox.put(event)

    @contextmanager
    def _reporting(self, envelope: Envelope) -> Iterator[None]:
        try:
            yield
        except (ClientError, StoreError) as error:
            self.report(error, envelope)
