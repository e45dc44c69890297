"""Enqueue, claim, and waiting for work."""

import asyncio
from dataclasses import replace

import pytest
from store.store_helpers import (
    LEASE_MS,
    MODEL,
    OWNER,
    append,
    check_invariants,
    claim_names,
    ending,
    enqueue,
    make_message,
    make_record,
    make_request,
    make_turn,
    messages_of,
)

from chatserve.engine.api import EventKind, LogEvent, RequestId
from chatserve.errors import Conflict, NotFound
from chatserve.store.claim import Claim
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Full, Place
from chatserve.store.queue import Cursor
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import ResponseStatus
from chatserve.store.sessions import SessionTurn


async def test_enqueue_stores_record_and_first_two_events(store: Store) -> None:
    request, record = make_request("a"), make_record("a")

    place = await store.queue.enqueue(request, record, max_queue=1)

    assert place == Place(0, None)
    assert await store.responses.get(request.request_id) == record
    assert await store.log.read(request.request_id) == [
        LogEntry(0, LogEvent(EventKind.CREATED)),
        LogEntry(1, LogEvent(EventKind.QUEUED)),
    ]
    await check_invariants(store)


async def test_positions_count_the_requests_before(store: Store) -> None:
    await enqueue(store, "a", "b", "c")

    stages = await store.queue.stages([RequestId(name) for name in "abcd"])

    places = [stage and stage.place for stage in stages]
    assert places == [Place(0, None), Place(1, None), Place(2, None), None]
    assert await store.queue.depth(MODEL) == 3


async def test_full_queue_refuses_and_stores_nothing(store: Store) -> None:
    await enqueue(store, "a", "b")

    refusal = await store.queue.enqueue(make_request("c"), make_record("c"), max_queue=2)

    assert refusal == Full(2, None)
    assert await store.responses.get(RequestId("c")) is None
    assert await store.log.read(RequestId("c")) == []
    assert await store.queue.depth(MODEL) == 2


async def test_full_queue_of_one_model_does_not_refuse_another(store: Store) -> None:
    await enqueue(store, "a")

    place = await store.queue.enqueue(
        make_request("b", model="other"), make_record("b"), max_queue=1
    )

    assert place == Place(0, None)


async def test_repeated_enqueue_changes_nothing(store: Store) -> None:
    """A reply was lost and the command sent again: the turn used to be stored twice."""
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a")
    await enqueue(store, "b", session_id="s")

    place = await store.queue.enqueue(
        make_request("b"), make_record("b", session_id="s"), max_queue=2, turn=make_turn("s")
    )

    assert place == Place(1, None)
    assert await store.queue.depth(MODEL) == 2
    assert len(await messages_of(store, "s")) == 1
    assert len(await store.log.read(RequestId("b"))) == 2


async def test_claim_returns_the_request_as_it_was_queued(store: Store) -> None:
    request = make_request("a")
    await store.queue.enqueue(request, make_record("a"), max_queue=1)

    [claim] = await store.queue.claim("w", MODEL, 5, LEASE_MS)

    expected = Claim(request, 1, 2, (), "", claim.queued_ms)
    assert claim == expected
    assert claim.queued_ms >= 0
    await check_invariants(store)


async def test_claim_takes_the_oldest_first_and_no_more_than_asked(store: Store) -> None:
    await enqueue(store, "a", "b", "c")

    first = await claim_names(store, "w", limit=2)
    second = await claim_names(store, "v", limit=2)

    assert (first, second) == (["a", "b"], ["c"])


async def test_claim_takes_only_requests_of_its_model(store: Store) -> None:
    await enqueue(store, "a")

    assert await store.queue.claim("w", "other", 5, LEASE_MS) == []


async def test_claim_sets_the_response_in_progress(store: Store) -> None:
    await enqueue(store, "a")

    await claim_names(store, "w")

    record = await store.responses.get(RequestId("a"))
    assert record is not None
    assert record.status is ResponseStatus.IN_PROGRESS


async def test_claim_skips_a_request_that_has_expired(store: Store) -> None:
    await enqueue(store, "a", "b")
    await store.commands.call("DEL", "cs:{0}:request:a", "cs:{0}:log:a", "cs:{0}:response:a")

    assert await claim_names(store, "w") == ["b"]


async def test_concurrent_claims_never_share_a_request(store: Store) -> None:
    names = [f"r{i}" for i in range(40)]
    await enqueue(store, *names)

    claims = await asyncio.gather(*(claim_names(store, f"w{i}", limit=3) for i in range(20)))

    assert sorted(name for claimed in claims for name in claimed) == sorted(names)


async def test_turn_stores_the_message_before_generation(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[make_message("system")])
    turn = make_turn("s", "A question")

    await store.queue.enqueue(
        make_request("a"), make_record("a", session_id="s"), max_queue=1, turn=turn
    )

    session = await store.sessions.get("s")
    assert session is not None
    assert session.active_response_id == "a"
    system, question = await messages_of(store, "s")
    assert system == make_message("system")
    assert question == replace(turn.messages[0], parent_id=system.message_id)
    await check_invariants(store)


async def test_turn_of_a_deleted_session_is_refused(store: Store) -> None:
    with pytest.raises(NotFound) as refusal:
        await enqueue(store, "a", session_id="gone")

    assert refusal.value.code == "conversation_not_found"
    assert await store.queue.depth(MODEL) == 0
    assert await store.responses.get(RequestId("a")) is None


async def test_second_turn_of_a_session_in_flight_is_refused(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")

    with pytest.raises(Conflict) as refusal:
        await enqueue(store, "b", session_id="s")

    assert refusal.value.code == "response_already_in_flight"
    assert len(await messages_of(store, "s")) == 1
    assert await store.queue.depth(MODEL) == 1


async def test_turns_sent_at_the_same_moment_are_never_both_taken(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    tries = (enqueue(store, name, session_id="s") for name in "abcdefgh")

    results = await asyncio.gather(*tries, return_exceptions=True)

    assert [type(result) for result in results if result is not None] == [Conflict] * 7
    assert len(await messages_of(store, "s")) == 1


async def test_session_accepts_a_turn_after_the_answer_has_ended(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    await claim_names(store, "w")
    await append(store, ending("a", 1, 2))

    await enqueue(store, "b", session_id="s")

    assert [message.role for message in await messages_of(store, "s")] == [
        "user",
        "assistant",
        "user",
    ]


async def test_answer_lost_without_trace_does_not_block_its_session(store: Store) -> None:
    await store.sessions.create(OWNER, "s")
    await enqueue(store, "a", session_id="s")
    await store.commands.call("DEL", "cs:{0}:request:a", "cs:{0}:log:a", "cs:{0}:response:a")

    await enqueue(store, "b", session_id="s")

    session = await store.sessions.get("s")
    assert session is not None
    assert session.active_response_id == "b"


async def test_turn_on_a_history_that_has_grown_is_refused(store: Store) -> None:
    await store.sessions.create(OWNER, "s", messages=[make_message("system"), make_message("user")])
    turn = SessionTurn("s", make_turn("s").messages, expected_leaf_id="another")

    with pytest.raises(Conflict) as refusal:
        await store.queue.enqueue(
            make_request("a"), make_record("a", session_id="s"), max_queue=1, turn=turn
        )

    assert refusal.value.code == "conversation_changed"


async def test_wait_ends_at_once_when_something_was_queued(store: Store) -> None:
    await enqueue(store, "a")

    wakeup = await store.queue.wait_for_work("w", MODEL, Cursor(), 60_000)

    assert wakeup.new_work
    assert wakeup.cancelled == ()


async def test_wait_ends_when_a_request_is_queued(store: Store) -> None:
    await enqueue(store, "a")
    seen = await store.queue.wait_for_work("w", MODEL, Cursor(), 60_000)
    waiting = asyncio.create_task(store.queue.wait_for_work("w", MODEL, seen.cursor, 60_000))

    await enqueue(store, "b")

    async with asyncio.timeout(10):
        assert (await waiting).new_work


async def test_wait_ends_without_news_when_its_time_is_up(store: Store) -> None:
    wakeup = await store.queue.wait_for_work("w", MODEL, Cursor(), 1)

    assert (wakeup.new_work, wakeup.cancelled, wakeup.cursor) == (False, (), Cursor())


async def test_wait_tells_of_cancelled_requests_once(store: Store) -> None:
    await enqueue(store, "a", "b")
    await claim_names(store, "w")
    await store.queue.cancel(RequestId("b"))
    await store.queue.cancel(RequestId("a"))

    first = await store.queue.wait_for_work("w", MODEL, Cursor(), 60_000)
    second = await store.queue.wait_for_work("w", MODEL, first.cursor, 1)

    assert first.cancelled == ("b", "a")
    assert second.cancelled == ()
