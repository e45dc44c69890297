"""Answers whose last events the store has lost: a crash, or a replica that was behind."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from gateway.gateway_helpers import (
    TIMEOUT_S,
    Event,
    Service,
    chat,
    first_response_id,
    kinds_of,
    run_service,
    sse_data,
    text_of,
)

from chatserve.engine.api import (
    EventKind,
    FinishReason,
    LogEvent,
    Outcome,
    RequestId,
    Usage,
)
from chatserve.gateway.generation import Answer
from chatserve.gateway.response_events import events_of
from chatserve.store import keys
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import ResponseRecord

RECORD = ResponseRecord(
    response_id=RequestId("resp_a"),
    model="echo",
    created_at=1_700_000_000,
    ttl_s=1000,
    assistant_message_id="msg_a",
)

LOSE_EVENTS = """
local log, request, from = KEYS[1], KEYS[2], tonumber(ARGV[1])
local kept = redis.call('XRANGE', log, '-', from .. '-0')
redis.call('DEL', log)
for _, entry in ipairs(kept) do redis.call('XADD', log, entry[1], unpack(entry[2])) end
redis.call('HSET', request, 'next', from)
"""


class StoreWithLog:
    """As much of a store as reading an answer needs."""

    def __init__(self, last_number: int | None) -> None:
        self._last_number = last_number

    @property
    def log(self) -> "StoreWithLog":
        return self

    async def last_number(self, _: RequestId) -> int | None:
        return self._last_number


def log_of(texts: Iterable[str], *, has_ended: bool = True) -> list[LogEntry]:
    """Return the entries of an answer from its first one, with a delta for each text."""
    kinds = [EventKind.CREATED, EventKind.QUEUED, EventKind.ITEM_ADDED, EventKind.PART_ADDED]
    events = [LogEvent(kind) for kind in kinds]
    events += [LogEvent(EventKind.DELTA, text=text) for text in texts]
    if has_ended:
        outcome = Outcome(FinishReason.STOP, Usage(1, 0, 1))
        events.append(LogEvent(EventKind.COMPLETED, outcome=outcome))
    return [LogEntry(number, event) for number, event in enumerate(events)]


async def read(
    *logs: list[LogEntry], after: int = -1, last_number: int | None = None
) -> list[Event]:
    """Return what a reader is told of a log that is read again each time it was cut."""

    async def entries() -> AsyncIterator[LogEntry]:
        for log in logs:
            for entry in log:
                yield entry

    store: Any = StoreWithLog(last_number)
    return [event async for event in events_of(store, Answer(RECORD, entries()), after)]


async def lose(service: Service, response_id: str, num_kept: int) -> None:
    """Lose the events of an answer from a number on, and its worker with them."""
    queue, call = service.store.queue, service.store.commands.call
    log, request = (keys.FIRST.key(key + response_id) for key in (keys.LOG, keys.REQUEST))
    await call("EVAL", LOSE_EVENTS, 2, log, request, num_kept)
    await call("ZADD", keys.FIRST.key(keys.LEASES), "XX", 0, response_id)
    await queue.reap()


async def test_reader_beyond_the_cut_gets_the_text_anew_under_greater_numbers() -> None:
    """It used to get the end of another answer behind the beginning of its own."""
    events = await read(log_of("abc", has_ended=False), log_of("axyz12"))

    gap = events[7]
    assert gap == {
        "type": "chatserve:response.gap",
        "response_id": "resp_a",
        "from": 0,
        "to": 7,
        "snapshot": "axyz",
    }
    numbers = [event["sequence_number"] for event in events if "sequence_number" in event]
    assert numbers == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert gap["snapshot"] + text_of(events[8:]) == "axyz12"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "axyz12"


@pytest.mark.parametrize("text", ["", "a", "ax"])
async def test_answer_that_ends_before_the_cut_is_told_whole(text: str) -> None:
    """Its readers used to get no last event."""
    events = await read(log_of("abc", has_ended=False), log_of(text))

    gap, last = events[7:]
    assert (gap["from"], gap["to"], gap["snapshot"]) == (0, 3 + len(text), text)
    assert (last["type"], last["sequence_number"]) == ("response.completed", gap["to"] + 1)


async def test_reader_that_has_nothing_yet_gets_every_event() -> None:
    events = await read([], log_of("a"))

    assert "chatserve:response.gap" not in kinds_of(events)


async def test_log_may_be_cut_more_than_once() -> None:
    events = await read(
        log_of("abc", has_ended=False), log_of("xy", has_ended=False), log_of("12345")
    )

    assert [event["snapshot"] for event in events if "snapshot" in event] == ["1234"]
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "12345"


async def test_resume_after_an_event_that_the_log_has_lost_gets_the_text_anew() -> None:
    """It used to get what followed the number, without what now had smaller ones."""
    events = await read(log_of("axyz12"), after=6, last_number=5)

    assert (events[0]["to"], events[0]["snapshot"]) == (7, "axyz")
    assert text_of(events[1:]) == "12"


async def test_resume_after_the_last_event_of_the_log_gets_what_follows_it() -> None:
    events = await read(log_of("abcd"), after=6, last_number=6)

    assert kinds_of(events) == ["response.output_text.delta", "response.completed"]


async def test_socket_is_told_that_the_store_has_lost_events(store_url: str) -> None:
    async with run_service(store_url) as service, service.socket() as socket:
        service.model.hold()
        await socket.create("Hello, world")
        service.model.allow(6)
        events = await socket.receive_texts(5)
        response_id = events[0]["response"]["id"]

        await lose(service, response_id, events[-1]["sequence_number"] - 2)
        service.model.release()
        rest = await socket.receive_answer()

    gaps = [event for event in rest if event["type"] == "chatserve:response.gap"]
    assert len(gaps) == 1
    assert gaps[0]["snapshot"] + text_of(rest) == "Hello, world"
    assert rest[-1]["response"]["output"][0]["content"][0]["text"] == "Hello, world"


@pytest.mark.parametrize("is_stream", [False, True])
async def test_completion_is_told_whole_or_ends_with_an_error(
    service: Service, is_stream: bool
) -> None:
    service.model.hold()
    body = chat("Hello, world", stream=is_stream)
    request = service.spawn(service.http.post("/v1/chat/completions", json=body))
    response_id = await first_response_id(service.store)
    service.model.allow(6)
    async with asyncio.timeout(TIMEOUT_S):
        while await service.metric("chatserve_time_to_first_token_seconds_count") < 1:  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.01)
    await lose(service, response_id, num_kept=3)
    service.model.release()

    reply = await request

    if is_stream:
        assert "store_unavailable" in sse_data(reply.text)[-1]
    else:
        assert reply.json()["choices"][0]["message"]["content"] == "Hello, world"
