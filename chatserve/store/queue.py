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
5. One that came back from a worker and that no other takes for ten minutes ends as failed
   (`worker_lost`): its readers must not wait for a worker that never comes.
6. One that a gateway sent to a worker is left to that one for `steal_after_ms`; then anybody takes
   it. Until then others take what comes next, and the tenant's turn comes back (`lua/claim.lua`).

`lua/fair_queue.lua` tells how, and why it can neither be cheated by coming and going nor starve
anybody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from chatserve.engine.api import (
    EventKind,
    GenerationRequest,
    LogEvent,
    Prefill,
    RequestId,
)
from chatserve.store import keys, scripts
from chatserve.store.claim import Claim
from chatserve.store.codec import Command, Value, counted, dump_json, flatten
from chatserve.store.fair_queue import DEFAULT_WEIGHTS, Full, Place, TokenWeights
from chatserve.store.keys import Partition, Partitions
from chatserve.store.limits import Allowances, Limited, Reservation
from chatserve.store.partition_turns import PartitionTurn, order_turns
from chatserve.store.redis_client import RedisClient
from chatserve.store.response_log import decode_entries, encode_event
from chatserve.store.responses import ResponseRecord
from chatserve.store.scripts import Script
from chatserve.store.sessions import MAX_ANSWERS, SessionTurn, in_a_row, turn_error
from chatserve.store.stage import Stage, pack_prefill, parse_stage
from chatserve.store.streams import read_streams

MAX_TAKEOVERS = 2
"""How often a lost request is given to another worker before it fails."""

STEAL_AFTER_MS = 500
"""How long a request waits for the worker that it was sent to. A prefix of a hundred tokens on a
CPU, or of ten thousand on an accelerator, is computed in about that time."""

_WORKER_LOST = "The worker that ran this request was lost, and so were those that took it over."
_WAKEUP_COUNT = 1000


class CancelOutcome(StrEnum):
    """What a cancel found and did."""

    NOT_FOUND = "not_found"
    ALREADY_FINISHED = "already_finished"
    FINISHED_IN_QUEUE = "finished_in_queue"  # its terminal event is in the log
    SIGNALLED = "signalled"  # its worker will be told


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

    def __init__(
        self, commands: RedisClient, blocking: RedisClient, partitions: Partitions
    ) -> None:
        self._commands = commands
        self._blocking = blocking
        self._partitions = partitions

    async def enqueue(
        self,
        request: GenerationRequest,
        record: ResponseRecord,
        *,
        max_queue: int,
        turn: SessionTurn | None = None,
        reservation: Reservation | None = None,
        reader: str | None = None,
        route: str | None = None,
    ) -> Place | Full | Limited:
        """Store a request with its record and queue it; a repetition changes nothing.

        A record in a session comes with its turn, whose messages are stored in the same step. When
        `max_queue` wait already, there is room only for tenants that have less than their equal
        share of it. With a reservation it is taken only if that fits.
        `reader` is the gateway that will read the answer, see `reading.py`, and `route` the worker
        that should rather run it than another one.

        Raises:
            NotFound: The session is gone.
            Conflict: The session has an answer in flight, or has grown since the prompt was made.
        """
        session_id = turn.session_id if turn else None
        assert record.session_id == session_id, f"record in {record.session_id}, turn {session_id}"
        arguments = _enqueue_arguments(request, record, max_queue, turn, reservation, reader, route)
        root = self._partitions.of_id(request.request_id).root
        reply = await self._commands.run(scripts.ENQUEUE, root, *arguments)
        match reply:
            case ["queued", position, eta_ms, allowances]:
                return Place(position, eta_ms, Allowances.parse(allowances))
            case ["full", depth, retry_ms]:
                return Full(depth, retry_ms)
            case ["limited", *shortage]:
                return Limited.parse(shortage)
        assert turn is not None, f"enqueue replied {reply!r}"
        raise turn_error(reply[0], turn.session_id, turn.parent_id)

    async def claim(
        self,
        worker_id: str,
        model: str,
        limit: int,
        lease_ms: int,
        weights: TokenWeights = DEFAULT_WEIGHTS,
        steal_after_ms: int = STEAL_AFTER_MS,
    ) -> list[Claim]:
        """Take up to `limit` requests whose turn it is.

        Those sent to another worker are taken once they have waited for `steal_after_ms`.

        A claim whose reply is lost leaves its requests leased to a worker that does not know of
        them; they come back when the lease ends.
        """
        options = {
            "worker_id": worker_id,
            "model": model,
            "lease_ms": lease_ms,
            "input_weight": weights.input,
            "output_weight": weights.output,
            "steal_after_ms": steal_after_ms,
        }
        rows: list[Any] = []
        while len(rows) < limit:
            num_before = len(rows)
            for turn in await self._turns(model):
                bounds = {"limit": limit - len(rows), "floor": turn.floor, "until": turn.until}
                rows += await self._commands.run(
                    scripts.CLAIM, turn.partition.root, dump_json({**options, **bounds})
                )
            if len(rows) == num_before or len(self._partitions.all) == 1:
                break
        return [await self._parse_claim(*row) for row in rows]

    async def _turns(self, model: str) -> Sequence[PartitionTurn]:
        """Return the partitions to claim from, in the order of their tenants' counters."""
        if len(self._partitions.all) == 1:
            return (PartitionTurn(self._partitions.all[0]),)
        commands: list[Command] = []
        for partition in self._partitions.all:
            waiting, flow = partition.key(keys.WAITING + model), partition.key(keys.FLOW + model)
            commands.append(("ZRANGE", waiting, 0, 0, "WITHSCORES"))
            commands.append(("HGET", flow, "floor"))
        replies = await self._commands.call_many(commands)
        return order_turns(
            self._partitions.all,
            [float(lowest[1]) if lowest else None for lowest in replies[::2]],
            [float(floor or 0) for floor in replies[1::2]],
        )

    async def extend_leases(
        self,
        worker_id: str,
        request_ids: Sequence[RequestId],
        lease_ms: int,
        *,
        prefills: Mapping[RequestId, Prefill] | None = None,
    ) -> list[RequestId]:
        """Renew leases and return those of `request_ids` that this worker does not own.

        Where a prompt is being computed, say how far it is. A request that ended while this was on
        its way is among those returned.
        """
        news = {name: pack_prefill(prefill) for name, prefill in (prefills or {}).items()}
        calls: list[Command] = []
        for partition, ids in self._partitions.by_id(request_ids).items():
            said = [value for name in ids for value in (name, news.get(name, ""))]
            calls.append((partition.root, worker_id, lease_ms, *said))
        lost = await self._commands.run_many(scripts.EXTEND, calls)
        return [RequestId(request_id) for ids in lost for request_id in ids]

    async def release(self, worker_id: str, request_ids: Sequence[RequestId]) -> None:
        """Put unfinished requests back to their places, as a worker does that stops."""
        calls: list[Command] = [
            (partition.root, worker_id, *ids)
            for partition, ids in self._partitions.by_id(request_ids).items()
        ]
        await self._commands.run_many(scripts.RELEASE, calls)

    async def reap(self) -> list[RequestId]:
        """Take back the requests whose lease has ended, and return them.

        Each goes back to its place in the queue, or ends as failed after MAX_TAKEOVERS.
        """
        return await self._everywhere(scripts.REAP, MAX_TAKEOVERS, _WORKER_LOST)

    async def end_overdue(self) -> list[RequestId]:
        """End requests that wait longer than their timeout allows, some at a time; return them."""
        return await self._everywhere(scripts.END_OVERDUE)

    async def cancel(self, request_id: RequestId) -> CancelOutcome:
        """Stop a request wherever it is; a repetition does no harm."""
        root = self._partitions.of_id(request_id).root
        return CancelOutcome(await self._commands.run(scripts.CANCEL, root, request_id))

    async def stages(self, request_ids: Sequence[RequestId]) -> list[Stage | None]:
        """Return how far each request is, None for one that has ended, in one round trip."""
        calls: list[Command] = [
            (self._partitions.of_id(request_id).root, request_id) for request_id in request_ids
        ]
        stages = await self._commands.run_many(scripts.STAGE, calls)
        return [parse_stage(*stage) if stage else None for stage in stages]

    async def depth(self, model: str) -> int:
        """Return how many requests of all tenants wait."""
        depths = await self._commands.call_many(
            [("HGET", each.key(keys.FLOW + model), "depth") for each in self._partitions.all]
        )
        return sum(int(depth or 0) for depth in depths)

    async def wait_for_work(
        self,
        worker_id: str,
        model: str,
        cursor: Cursor,
        block_ms: int,
        partition: Partition = keys.FIRST,
    ) -> Wakeup:
        """Wait until the queue was filled, a request of this worker cancelled, or the time is up.

        A fresh cursor wakes at once if the queue was ever filled, so that a new worker need not
        look at it first. Each partition is waited for by itself.
        """
        bell = partition.key(keys.BELL + model)
        inbox = partition.key(keys.INBOX + worker_id)
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
        return Claim.of(request, epoch, next_sequence, queued_ms, events)

    async def _logged_events(self, request_id: RequestId) -> list[LogEvent]:
        log = self._partitions.of_id(request_id).key(keys.LOG + request_id)
        reply = await self._commands.call("XRANGE", log, "-", "+")
        return [entry.event for entry in decode_entries(reply)]

    async def _everywhere(self, script: Script, *arguments: Value) -> list[RequestId]:
        """Run a script on every partition and return the ids that it names."""
        calls = [(each.root, *arguments) for each in self._partitions.all]
        found = await self._commands.run_many(script, calls)
        return [RequestId(request_id) for ids in found for request_id in ids]


def _enqueue_arguments(
    request: GenerationRequest,
    record: ResponseRecord,
    max_queue: int,
    turn: SessionTurn | None,
    reservation: Reservation | None,
    reader: str | None,
    route: str | None,
) -> Command:
    turn = turn or SessionTurn("", ())
    options: dict[str, Any] = {
        "id": request.request_id,
        "max_queue": max_queue,
        "session_id": turn.session_id,
        "title": turn.title,
        "parent_id": turn.parent_id,
        "leaf_id": turn.expected_leaf_id,
        "continues": turn.continues or None,
        "max_answers": MAX_ANSWERS,
        "priority": request.priority,
        "timeout_ms": request.timeout_ms,
        "limits": reservation.to_dict() if reservation else None,
        "route": route,
        "ttl_s": record.ttl_s,
    }
    fields: dict[str, Value] = {
        "model": request.model,
        "tenant": request.tenant,
        "user": request.user,
        "payload": dump_json(request.to_dict()),
        "input_tokens": len(request.prompt_token_ids),
        "message_id": record.assistant_message_id,
    }
    if reader is not None:
        fields[f"reader:{reader}"] = 1
    arguments: list[Value] = [
        dump_json({name: value for name, value in options.items() if value is not None}),
        *counted(flatten(fields)),
        *counted(record.to_fields()),
        *counted(encode_event(LogEvent(EventKind.CREATED))),
        *counted(encode_event(LogEvent(EventKind.QUEUED))),
    ]
    for message in in_a_row(turn.messages):
        arguments += counted(message.to_fields())
    return tuple(arguments)
