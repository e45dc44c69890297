"""Appending to logs: numbering, epochs, and the end of an answer."""

from store.store_helpers import (
    OWNER,
    append,
    check_invariants,
    claim_names,
    delta,
    deltas,
    ending,
    enqueue,
    expire_leases,
    make_record,
    make_request,
    messages_of,
)

from chatserve.engine.api import EventKind, FinishReason, LogEvent, RequestId
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.response_log import Append
from chatserve.store.responses import ResponseStatus
from chatserve.store.sessions import Message, MessageStatus

A = RequestId("a")
HOUR_S = 3600


async def start(store: Store, *names: str) -> None:
    await enqueue(store, *names)
    await claim_names(store, "w")


async def ttl_s(store: Store, key: str) -> int:
    seconds: int = await store.commands.call("TTL", key)
    return seconds


async def test_every_event_is_read_as_it_was_written(store: Store) -> None:
    await start(store, "a")
    last = ending("a", 1, 0)
    events = (
        LogEvent(EventKind.IN_PROGRESS, cached_tokens=7),
        LogEvent(EventKind.ITEM_ADDED),
        LogEvent(EventKind.PART_ADDED),
        delta("Grüße, 世界 👋🏽\x00\u2028", 1, 2, 3),
        delta("", 4),
        delta("text without ids"),
        LogEvent(EventKind.TEXT_DONE),
        LogEvent(EventKind.PART_DONE),
        LogEvent(EventKind.ITEM_DONE),
        *last.events,
    )

    await append(store, Append(A, 1, 2, events, last.final))

    entries = await store.log.read(A)
    assert tuple(entry.event for entry in entries[2:]) == events
    assert [entry.sequence_number for entry in entries] == list(range(12))


async def test_read_returns_what_comes_after_a_number(store: Store) -> None:
    await start(store, "a")
    await append(store, deltas("a", 1, 2, "x", "y"))

    entries = await store.log.read(A, after=2)

    assert [(entry.sequence_number, entry.event.text) for entry in entries] == [(3, "y")]


async def test_read_of_an_unknown_log_is_empty(store: Store) -> None:
    assert await store.log.read(A) == []


async def test_many_logs_are_written_in_one_call(store: Store) -> None:
    names = [f"r{i}" for i in range(50)]
    await start(store, *names)

    results = await store.log.append([deltas(name, 1, 2, name) for name in names])

    assert results == [True] * 50
    texts = [(await store.log.read(RequestId(name)))[-1].event.text for name in names]
    assert texts == names


async def test_one_refused_append_does_not_hinder_the_others(store: Store) -> None:
    await start(store, "a", "b", "c")

    results = await store.log.append(
        [deltas("a", 1, 2, "x"), deltas("b", 9, 2, "x"), deltas("c", 1, 2, "x")]
    )

    assert results == [True, False, True]
    assert len(await store.log.read(RequestId("b"))) == 2


async def test_append_without_a_claim_is_refused(store: Store) -> None:
    await enqueue(store, "a")

    assert await store.log.append([deltas("a", 0, 2, "x"), deltas("none", 1, 0, "x")]) == [
        False,
        False,
    ]


async def test_repeated_append_is_not_doubled(store: Store) -> None:
    """The reply to the first one was lost; its sender must neither double nor give up."""
    await start(store, "a")
    await append(store, deltas("a", 1, 2, "x", "y"))

    assert await store.log.append([deltas("a", 1, 2, "x", "y")]) == [True]

    assert [entry.event.text for entry in await store.log.read(A, after=1)] == ["x", "y"]


async def test_append_that_overlaps_or_leaves_a_gap_is_refused(store: Store) -> None:
    await start(store, "a")
    await append(store, deltas("a", 1, 2, "x", "y"))

    results = await store.log.append([deltas("a", 1, 3, "y", "z"), deltas("a", 1, 5, "later")])

    assert results == [False, False]
    assert len(await store.log.read(A)) == 4
    await check_invariants(store)


async def test_end_completes_the_record(store: Store) -> None:
    await start(store, "a")
    last = ending("a", 1, 2, "Привет")

    await append(store, last)

    record = await store.responses.get(A)
    assert record is not None
    assert last.final is not None
    assert record.status is ResponseStatus.COMPLETED
    assert record.output_text == "Привет"
    assert record.output_token_ids == (21, 22)
    assert record.outcome == last.final.outcome
    await check_invariants(store)


async def test_end_gives_the_status_of_its_reason(store: Store) -> None:
    reasons = {
        FinishReason.STOP: ResponseStatus.COMPLETED,
        FinishReason.LENGTH: ResponseStatus.INCOMPLETE,
        FinishReason.ABORT: ResponseStatus.INCOMPLETE,
        FinishReason.ERROR: ResponseStatus.FAILED,
    }
    await start(store, *reasons)

    await append(store, *(ending(reason, 1, 2, reason=reason) for reason in reasons))

    records = [await store.responses.get(RequestId(reason)) for reason in reasons]
    assert [record and record.status for record in records] == list(reasons.values())


async def test_end_refuses_everything_after_it(store: Store) -> None:
    await start(store, "a")
    await append(store, ending("a", 1, 2))

    assert await store.log.append([deltas("a", 1, 3, "more")]) == [False]
    assert await store.queue.extend_leases("w", [A], 1000) == ["a"]


async def test_repeated_end_is_recognised_as_the_same(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    await claim_names(store, "w")
    await append(store, ending("a", 1, 2))

    results = await store.log.append([ending("a", 1, 2), ending("a", 2, 2)])

    assert results == [True, False]
    assert len(await store.log.read(A)) == 3
    assert len(await messages_of(store, "s")) == 2


async def test_end_by_the_reaper_is_not_taken_for_the_worker_s(store: Store) -> None:
    await start(store, "a")
    await store.queue.cancel(A)
    await expire_leases(store, "a")
    await store.queue.reap()

    assert await store.log.append([ending("a", 1, 2)]) == [False]


async def test_end_appends_the_answer_to_its_session(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    await claim_names(store, "w")
    last = ending("a", 1, 2, "An answer", reason=FinishReason.LENGTH)

    await append(store, last)

    session = await store.sessions.get("s")
    assert session is not None
    assert last.final is not None
    assert session.active_response_id is None
    answer = (await messages_of(store, "s"))[-1]
    assert answer == Message(
        "answer-of-a",
        "assistant",
        "An answer",
        answer.created_at,
        A,
        MessageStatus.INCOMPLETE,
        (21, 22),
        last.final.outcome,
        parent_id="message-of-a",
    )


async def test_end_puts_its_session_to_the_top_of_the_list(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    await claim_names(store, "w")
    await store.commands.call("ZADD", keys.FIRST.key(keys.SESSIONS + keys.owner(*OWNER)), 1, "s")
    await store.sessions.create(OWNER, "newer")

    await append(store, ending("a", 1, 2))

    assert [session.session_id for session in await store.sessions.list(OWNER, 1)] == ["s"]


async def test_end_after_its_session_was_deleted_brings_nothing_back(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    await claim_names(store, "w")
    await store.sessions.delete("s")

    await append(store, ending("a", 1, 2))

    assert await store.sessions.get("s") is None
    assert await messages_of(store, "s") == []
    assert await store.sessions.list(OWNER, 10) == []
    assert await store.responses.get(RequestId("a")) is None


async def test_end_after_its_record_was_deleted_brings_nothing_back(store: Store) -> None:
    await start(store, "a")
    await store.responses.delete(A)

    await append(store, ending("a", 1, 2))

    assert await store.responses.get(A) is None
    await check_invariants(store)


async def test_everything_in_flight_expires_if_nobody_renews_it(store: Store) -> None:
    await start(store, "a")

    ttls = [
        await ttl_s(store, prefix + "a")
        for prefix in (
            keys.FIRST.key(keys.REQUEST),
            keys.FIRST.key(keys.RESPONSE),
            keys.FIRST.key(keys.LOG),
        )
    ]

    assert all(keys.IDLE_TTL_S - HOUR_S < ttl <= keys.IDLE_TTL_S for ttl in ttls)


async def test_log_and_record_expire_after_the_end(store: Store) -> None:
    record = make_record("a", ttl_s=5000)
    await store.queue.enqueue(make_request("a"), record, max_queue=1)
    await claim_names(store, "w")

    await append(store, ending("a", 1, 2))

    assert 0 < await ttl_s(store, keys.FIRST.key(keys.LOG + "a")) <= keys.LOG_TTL_S
    assert keys.LOG_TTL_S < await ttl_s(store, keys.FIRST.key(keys.RESPONSE + "a")) <= 5000


async def test_record_in_a_session_lives_as_long_as_that(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    await claim_names(store, "w")

    await append(store, ending("a", 1, 2))

    assert await ttl_s(store, keys.FIRST.key(keys.RESPONSE + "a")) == -1


async def test_deltas_are_compact(store: Store) -> None:
    await start(store, "a")
    await append(store, deltas("a", 1, 2, *("word" for _ in range(1000))))

    size: int = await store.commands.call(
        "MEMORY", "USAGE", keys.FIRST.key(keys.LOG + "a"), "SAMPLES", 0
    )

    assert size < 60_000
