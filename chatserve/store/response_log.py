"""The numbered events of every answer, as entries of a Redis Stream.

Owns how an event is written and the rule of writing: only the owner of a request's current epoch
may append, and numbers follow on without gaps. The entry of event `n` has the id `(n+1)-0`, since
the server allows no 0-0. Following a log that still grows is `log_reader.py`.

Fields of an entry, short because a log has one entry every few tokens:

    delta           t text, i token ids; f ms to the first token, in the first one
    in progress     k kind, n input tokens, c cached tokens, q ms in the queue
    item done       k kind, o outcome; so have the terminal ones
    any other       k kind
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatserve.engine.api import EventKind, LogEvent, Outcome, RequestId
from chatserve.store import keys, scripts
from chatserve.store.codec import (
    Value,
    counted,
    dump_outcome,
    load_outcome,
    pack_token_ids,
    unpack_token_ids,
)
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient
from chatserve.store.streams import StreamEntry, parse_entries


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An event and its number."""

    sequence_number: int
    event: LogEvent


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """What the response object keeps of an answer that has ended."""

    text: str
    token_ids: tuple[int, ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Append:
    """Events to append to one log. `final` is set exactly if the last event is terminal."""

    request_id: RequestId
    epoch: int
    first_sequence: int
    events: tuple[LogEvent, ...]
    final: FinalAnswer | None = None


class ResponseLog:
    """Writes and reads the logs.

    Owns: nothing in memory.
    Used from: the event loop, of workers to append and of gateways to read.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def append(self, appends: Sequence[Append]) -> list[bool]:
        """Append to many logs in one round trip.

        True: the events are in the log, written now or by an earlier try whose reply was lost.
        False: refused, nothing written; the request has another owner or has ended, or the
        numbers do not follow on.
        """
        replies = await self._redis.run_many(
            scripts.APPEND,
            [
                (self._partitions.of_id(append.request_id).root, *_append_arguments(append))
                for append in appends
            ],
        )
        return [reply == 1 for reply in replies]

    async def read(self, request_id: RequestId, after: int = -1) -> list[LogEntry]:
        """Return the entries numbered above `after`, none when there is no such log."""
        log = self._partitions.of_id(request_id).key(keys.LOG + request_id)
        reply = await self._redis.call("XRANGE", log, entry_id(after + 1), "+")
        return decode_entries(reply)

    async def last_number(self, request_id: RequestId) -> int | None:
        """Return the number of a log's last entry, None when there is no such log."""
        log = self._partitions.of_id(request_id).key(keys.LOG + request_id)
        reply = await self._redis.call("XREVRANGE", log, "+", "-", "COUNT", 1)
        entries = decode_entries(reply)
        return entries[0].sequence_number if entries else None


def decode_entries(reply: list[Any]) -> list[LogEntry]:
    """Parse the entries of one log, as XRANGE and XREVRANGE send them."""
    return [decode_entry(entry) for entry in parse_entries(reply)]


def entry_id(sequence_number: int) -> str:
    return f"{sequence_number + 1}-0"


def decode_entry(entry: StreamEntry) -> LogEntry:
    return decode_event(int(entry.entry_id.partition("-")[0]) - 1, entry.fields)


def decode_event(sequence_number: int, fields: Mapping[str, str]) -> LogEntry:
    event = LogEvent(
        kind=EventKind(fields.get("k", EventKind.DELTA)),
        text=fields.get("t", ""),
        token_ids=unpack_token_ids(fields.get("i", "")),
        input_tokens=int(fields.get("n", 0)),
        cached_tokens=int(fields.get("c", 0)),
        queue_ms=_parse_ms(fields.get("q")),
        ttft_ms=_parse_ms(fields.get("f")),
        outcome=load_outcome(fields.get("o", "")),
    )
    return LogEntry(sequence_number, event)


def encode_event(event: LogEvent) -> list[Value]:
    if event.kind is EventKind.DELTA:
        delta: list[Value] = ["t", event.text, "i", pack_token_ids(event.token_ids)]
        return delta if event.ttft_ms is None else [*delta, "f", event.ttft_ms]
    if event.kind is EventKind.IN_PROGRESS:
        start: list[Value] = [
            "k",
            event.kind.value,
            "n",
            event.input_tokens,
            "c",
            event.cached_tokens,
        ]
        return start if event.queue_ms is None else [*start, "q", event.queue_ms]
    if event.outcome is not None:
        return ["k", event.kind.value, "o", dump_outcome(event.outcome)]
    return ["k", event.kind.value]


def _parse_ms(value: str | None) -> float | None:
    return None if value is None else float(value)


def _append_arguments(append: Append) -> list[Value]:
    assert append.events, f"an append to {append.request_id} has no events"
    last = append.events[-1].kind
    assert last.is_terminal == (append.final is not None), f"{last} with final={append.final}"
    arguments: list[Value] = [
        append.request_id,
        append.epoch,
        append.first_sequence,
        len(append.events),
    ]
    arguments += _final_arguments(append.final)
    for event in append.events:
        arguments += counted(encode_event(event))
    return arguments


def _final_arguments(final: FinalAnswer | None) -> list[Value]:
    if final is None:
        return ["", "", "", ""]
    status = final.outcome.terminal_kind.value.removeprefix("response.")
    return [status, final.text, pack_token_ids(final.token_ids), dump_outcome(final.outcome)]
