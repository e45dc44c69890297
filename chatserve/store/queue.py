"""Requests on their way to a worker: queue, leases, cancelling, and what happens to lost ones.

Owns the life of a request between gateway and worker. Each step is one script, so that a request
is always in exactly one of these places, whoever dies in between:

                   claim                  append of the terminal event
    enqueue ──> queued ────────> leased ──────────────────────────────> ended
                  │  ^             │ │
                  │  └─────────────┘ │
                  │ release, or reap │ reap, when it was lost too often
                  │ (to its place)   │
                  └──── cancel ──────┴────────────────────────────────> ended
                      or end_overdue

A queued request is owned by nobody: nobody may write its log but the scripts. A claim gives it an
owner and the next epoch; writes under any other epoch are refused.

Whose turn it is, for each model:
1. Between tenants, that of the one that was served the fewest tokens since they compete. `claim`
   charges a prompt, `ResponseLog.append` what it writes; a request that was lost and is claimed
   again is not charged a second time.
2. Within a tenant, the lowest priority first, where one level is worth ten seconds of waiting: an
   old request goes before a young one of any priority in the end.
3. One that comes back from a worker stands where it would stand had it never left, which is before
   all that came after it with no greater urgency.
4. One that has a timeout ends when that is over, counted from the enqueue through all take-overs:
   `claim` never hands it out, `end_overdue` ends it where nobody claims, its worker where it runs.

`lua/fair_queue.lua` tells how, and why it can neither be cheated by coming and going nor starve
anybody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson

from chatserve.engine.api import EventKind, GenerationRequest, LogEvent, RequestId
from chatserve.errors import Conflict, NotFound
from chatserve.store import keys, scripts
from chatserve.store.codec import Command, Value, counted, dump_json, flatten
from chatserve.store.fair_queue import DEFAULT_WEIGHTS, Full, Place, TokenWeights
from chatserve.store.redis_client import RedisClient
from chatserve.store.response_log import decode_entries, encode_event
from chatserve.store.responses import ResponseRecord
from chatserve.store.sessions import SessionTurn
from chatserve.store.streams import read_streams

MAX_TAKEOVERS = 2
"""How often a lost request is given to another worker before it fails."""

_WORKER_LOST = "The worker that ran this request was lost, and so were those that took it over."
_WAKEUP_COUNT = 1000


class CancelOutcome(StrEnum):
    """What a cancel found and did."""

    NOT_FOUND = "not_found"
    ALREADY_FINISHED = "already_finished"
    FINISHED_IN_QUEUE = "finished_in_queue"  # its terminal event is in the log
    SIGNALLED = "signalled"  # its worker will be told


@dataclass(frozen=True, slots=True)
class Claim:
    """A request that this worker now owns, until its lease ends.

    `logged_token_ids` and `logged_text` are what readers already have from earlier owners, and
    `next_sequence` is the number of the next event. `queued_ms` counts from the first enqueue.
    """

    request: GenerationRequest
    epoch: int
    next_sequence: int
    logged_token_ids: tuple[int, ...]
    logged_text: str
    queued_ms: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a worker has read the bell of its model and its own inbox."""

    bell: str = "0-0"
    inbox: str = "0-0"


@dataclass(frozen=True, slots=True)
class Wakeup:
    """Why a worker was woken; neither reason is set when the wait simply ended."""

    cursor: Cursor
    new_work: bool
    cancelled: tuple[RequestId, ...]


class RequestQueue:
    """The queue of each model and the leases of the requests taken from it.

    Owns: nothing in memory.
    Used from: the event loop, of gateways and of workers.
    """

    def __init__(self, commands: RedisClient, blocking: RedisClient) -> None:
        self._commands = commands
        self._blocking = blocking

    async def enqueue(
        self,
        request: GenerationRequest,
        record: ResponseRecord,
        *,
        max_queue: int,
        turn: SessionTurn | None = None,
    ) -> Place | Full:
        """Store a request with its record and queue it; a repetition changes nothing.

        A record in a session comes with its turn, whose messages are stored in the same step. When
        `max_queue` wait already, there is room only for tenants that have less than their equal
        share of it.

        Raises:
            NotFound: The session is gone.
            Conflict: The session has an answer in flight, or has grown since the prompt was made.
        """
        session_id = turn.session_id if turn else None
        assert record.session_id == session_id, f"record in {record.session_id}, turn {session_id}"
        arguments = _enqueue_arguments(request, record, max_queue, turn)
        reply = await self._commands.run(scripts.ENQUEUE, *arguments)
        match reply:
            case ["queued", position, eta_ms]:
                return Place(position, eta_ms)
            case ["full", depth, retry_ms]:
                return Full(depth, retry_ms)
        raise _turn_error(reply[0], session_id)

    async def claim(
        self,
        worker_id: str,
        model: str,
        limit: int,
        lease_ms: int,
        weights: TokenWeights = DEFAULT_WEIGHTS,
    ) -> list[Claim]:
        """Take up to `limit` requests whose turn it is.

        A claim whose reply is lost leaves its requests leased to a worker that does not know of
        them; they come back when the lease ends.
        """
        rows = await self._commands.run(
            scripts.CLAIM, worker_id, model, limit, lease_ms, weights.input, weights.output
        )
        return [await self._parse_claim(*row) for row in rows]

    async def extend_leases(
        self, worker_id: str, request_ids: Sequence[RequestId], lease_ms: int
    ) -> list[RequestId]:
        """Renew leases and return those of `request_ids` that this worker does not own.

        A request that ended while this was on its way is among them.
        """
        lost = await self._commands.run(scripts.EXTEND, worker_id, lease_ms, *request_ids)
        return [RequestId(request_id) for request_id in lost]

    async def release(self, worker_id: str, request_ids: Sequence[RequestId]) -> None:
        """Put unfinished requests back to their places, as a worker does that stops."""
        await self._commands.run(scripts.RELEASE, worker_id, *request_ids)

    async def reap(self) -> list[RequestId]:
        """Take back the requests whose lease has ended, and return them.

        Each goes back to its place in the queue, or ends as failed after MAX_TAKEOVERS.
        """
        reaped = await self._commands.run(scripts.REAP, MAX_TAKEOVERS, _WORKER_LOST)
        return [RequestId(request_id) for request_id in reaped]

    async def end_overdue(self) -> list[RequestId]:
        """End requests that wait longer than their timeout allows, some at a time; return them."""
        ended = await self._commands.run(scripts.END_OVERDUE)
        return [RequestId(request_id) for request_id in ended]

    async def cancel(self, request_id: RequestId) -> CancelOutcome:
        """Stop a request wherever it is; a repetition does no harm."""
        return CancelOutcome(await self._commands.run(scripts.CANCEL, request_id))

    async def position(self, request_id: RequestId) -> Place | None:
        """Return where a request waits, or None when it does not."""
        place = await self._commands.run(scripts.POSITION, request_id)
        return Place(*place) if place else None

    async def depth(self, model: str) -> int:
        """Return how many requests of all tenants wait."""
        return int(await self._commands.call("HGET", keys.FLOW + model, "depth") or 0)

    async def wait_for_work(
        self, worker_id: str, model: str, cursor: Cursor, block_ms: int
    ) -> Wakeup:
        """Wait until the queue was filled, a request of this worker cancelled, or the time is up.

        A fresh cursor wakes at once if the queue was ever filled, so that a new worker need not
        look at it first.
        """
        bell, inbox = keys.BELL + model, keys.INBOX + worker_id
        entries = await read_streams(
            self._blocking,
            {bell: cursor.bell, inbox: cursor.inbox},
            block_ms=block_ms,
            count=_WAKEUP_COUNT,
        )
        rung, signalled = entries.get(bell, []), entries.get(inbox, [])
        return Wakeup(
            cursor=Cursor(
                bell=rung[-1].entry_id if rung else cursor.bell,
                inbox=signalled[-1].entry_id if signalled else cursor.inbox,
            ),
            new_work=bool(rung),
            cancelled=tuple(RequestId(entry.fields["request_id"]) for entry in signalled),
        )

    async def _parse_claim(
        self, payload: str, epoch: int, next_sequence: int, queued_ms: int
    ) -> Claim:
        request = GenerationRequest.from_dict(orjson.loads(payload))
        events = await self._logged_events(request.request_id) if epoch > 1 else []
        return Claim(
            request=request,
            epoch=epoch,
            next_sequence=next_sequence,
            logged_token_ids=tuple(i for event in events for i in event.token_ids),
            logged_text="".join(event.text for event in events),
            queued_ms=queued_ms,
        )

    async def _logged_events(self, request_id: RequestId) -> list[LogEvent]:
        reply = await self._commands.call("XRANGE", keys.LOG + request_id, "-", "+")
        return [entry.event for entry in decode_entries(reply)]


def _enqueue_arguments(
    request: GenerationRequest, record: ResponseRecord, max_queue: int, turn: SessionTurn | None
) -> Command:
    turn = turn or SessionTurn("", ())
    expected = turn.expected_num_messages
    fields: dict[str, Value] = {
        "model": request.model,
        "tenant": request.tenant,
        "payload": dump_json(request.to_dict()),
        "input_tokens": len(request.prompt_token_ids),
        "message_id": record.assistant_message_id,
    }
    arguments: list[Value] = [
        request.request_id,
        max_queue,
        turn.session_id,
        turn.title,
        -1 if expected is None else expected,
        request.priority,
        "" if request.timeout_ms is None else request.timeout_ms,
        *counted(flatten(fields)),
        *counted(record.to_fields()),
        *counted(encode_event(LogEvent(EventKind.CREATED))),
        *counted(encode_event(LogEvent(EventKind.QUEUED))),
    ]
    for message in turn.messages:
        arguments += counted(message.to_fields())
    return tuple(arguments)


def _turn_error(reason: str, session_id: str | None) -> NotFound | Conflict:
    match reason:
        case "no_session":
            message = f"there is no conversation {session_id!r}"
            return NotFound(message, code="conversation_not_found", param="conversation")
        case "busy":
            message = f"conversation {session_id!r} has a response in flight"
            code = "response_already_in_flight"
        case _:
            assert reason == "changed", f"enqueue replied {reason!r}"
            message = f"conversation {session_id!r} has changed since its history was read"
            code = "conversation_changed"
    return Conflict(message, code=code, param="conversation")
