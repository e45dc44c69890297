"""A worker on a real store: claims, logs, cancels, take-overs, its own end."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from engine.worker_helpers import (
    RunningWorker,
    end_leases,
    enqueue,
    finished_log,
    log_when,
    running_worker,
    text_of,
    until,
)
from gateway.fake_model import MODEL, FakeModel

from chatserve.engine.api import EventKind, FinishReason
from chatserve.errors import EngineError
from chatserve.store.claim import Claim
from chatserve.store.connection import Store
from chatserve.store.queue import CancelOutcome
from chatserve.store.response_log import LogEntry


def has_text(log: list[LogEntry]) -> bool:
    return bool(text_of(log))


async def test_an_answer_is_written_event_by_event_and_ends_in_its_record(store: Store) -> None:
    async with running_worker(store, FakeModel()):
        request_id = await enqueue(store, "r1", "abc")
        log = await finished_log(store, request_id)

    record = await store.responses.get(request_id)
    assert [entry.sequence_number for entry in log] == list(range(len(log)))
    assert [entry.event.kind for entry in log[:5]] == [
        EventKind.CREATED,
        EventKind.QUEUED,
        EventKind.IN_PROGRESS,
        EventKind.ITEM_ADDED,
        EventKind.PART_ADDED,
    ]
    assert text_of(log) == "defgh"
    assert record is not None
    assert (record.output_text, record.status.value) == ("defgh", "incomplete")
    assert record.outcome is not None
    assert record.outcome.finish_reason is FinishReason.LENGTH


async def test_a_stop_string_ends_an_answer_and_is_not_part_of_it(store: Store) -> None:
    async with running_worker(store, FakeModel()):
        request_id = await enqueue(store, "r1", "a", stop=("fg",), max_tokens=50)
        log = await finished_log(store, request_id)

    assert text_of(log) == "bcde"
    assert log[-1].event.kind is EventKind.COMPLETED


async def test_many_requests_run_at_once_and_all_pages_come_back(store: Store) -> None:
    async with running_worker(store, FakeModel(), num_pages=24) as running:
        ids = [await enqueue(store, f"r{i}", "a" * (i + 1), max_tokens=40) for i in range(12)]
        logs = [await finished_log(store, request_id) for request_id in ids]
        await until(lambda: running.engine.stats().requests_running == 0)
        stats = running.engine.stats()

    alphabet = "bcdefghijklmnopqrstuvwxyza" * 2
    assert all(text_of(log) == alphabet[:40] for log in logs)
    assert stats.pages_used == 0
    assert stats.pages_free + stats.pages_cached == stats.num_pages


async def test_a_cancel_ends_the_answer_without_waiting_for_the_running_step(store: Store) -> None:
    model = FakeModel()
    async with running_worker(store, model) as running:
        model.hold()
        model.allow(3)
        request_id = await enqueue(store, "r1", "a", max_tokens=2000)
        await log_when(store, request_id, has_text)

        assert await store.queue.cancel(request_id) is CancelOutcome.SIGNALLED
        log = await finished_log(store, request_id)
        model.release()
        await until(lambda: running.engine.stats().pages_used == 0)

    assert log[-1].event.kind is EventKind.INCOMPLETE
    outcome = log[-1].event.outcome
    assert outcome is not None
    assert outcome.finish_reason is FinishReason.ABORT
    record = await store.responses.get(request_id)
    assert record is not None
    assert record.output_text == text_of(log)


async def test_a_cancel_before_the_first_token_ends_at_once(store: Store) -> None:
    model = FakeModel()
    model.hold()
    async with running_worker(store, model):
        request_id = await enqueue(store, "r1", "a")
        await log_when(store, request_id, lambda log: True)
        await store.queue.cancel(request_id)
        log = await finished_log(store, request_id)

    assert text_of(log) == ""
    assert log[-1].event.kind is EventKind.INCOMPLETE


async def test_another_worker_goes_on_where_a_lost_one_stopped(store: Store) -> None:
    model = FakeModel()
    first = RunningWorker(store, "lost", model.next_token)
    request_id = await enqueue(store, "r1", "a", max_tokens=20)
    await log_when(store, request_id, lambda log: len(text_of(log)) >= 3)
    await first.kill()
    before = await store.log.read(request_id)

    await end_leases(store)
    async with running_worker(store, FakeModel(), "second"):
        log = await finished_log(store, request_id)

    outcome = log[-1].event.outcome
    assert outcome is not None
    assert outcome.timings.queue_ms == before[2].event.queue_ms
    assert outcome.timings.ttft_ms == before[5].event.ttft_ms
    assert outcome.usage.cached_tokens == before[2].event.cached_tokens
    assert log[: len(before)] == before
    assert [entry.sequence_number for entry in log] == list(range(len(log)))
    assert text_of(log) == "bcdefghijklmnopqrstu"


async def test_a_worker_that_stops_hands_its_requests_back(store: Store) -> None:
    model = FakeModel()
    async with running_worker(store, model, "first") as first:
        request_id = await enqueue(store, "r1", "a", max_tokens=500)
        await log_when(store, request_id, has_text)
        first.stop.set()
        await first.task

    assert await store.queue.depth(MODEL) == 1
    assert await store.workers.live() == []
    async with running_worker(store, FakeModel(), "second"):
        log = await finished_log(store, request_id)
    assert text_of(log) == ("bcdefghijklmnopqrstuvwxyza" * 20)[:500]


async def test_an_engine_that_dies_ends_its_worker_with_an_error(store: Store) -> None:
    def broken(history: Sequence[int]) -> int:
        raise AssertionError("an invariant is broken")

    running = RunningWorker(store, "w1", broken)
    await enqueue(store, "r1", "a")

    with pytest.raises(EngineError):
        await asyncio.wait_for(running.task, 20)


async def test_a_request_that_kills_every_engine_fails_in_the_end(store: Store) -> None:
    def broken(history: Sequence[int]) -> int:
        raise AssertionError("an invariant is broken")

    request_id = await enqueue(store, "r1", "a")
    for name in ("w1", "w2", "w3"):
        running = RunningWorker(store, name, broken)
        await asyncio.gather(running.task, return_exceptions=True)
        await end_leases(store)
        await store.queue.reap()

    log = await store.log.read(request_id)
    assert log[-1].event.kind is EventKind.FAILED
    assert log[-1].event.outcome is not None
    assert log[-1].event.outcome.error_message


async def test_logits_that_are_not_finite_fail_that_answer_alone(store: Store) -> None:
    model = FakeModel()

    def next_token(history: Sequence[int]) -> int | None:
        return None if len(history) == 7 else model.next_token(history)

    running = RunningWorker(store, "w1", next_token)
    failing = await enqueue(store, "r1", "abcdef", max_tokens=5)
    fine = await enqueue(store, "r2", "abcdefgh", max_tokens=5)
    failed_log, fine_log = await finished_log(store, failing), await finished_log(store, fine)
    running.stop.set()
    await running.task

    assert failed_log[-1].event.kind is EventKind.FAILED
    assert text_of(fine_log) == "ijklm"


async def test_the_metrics_add_up_to_the_pool(store: Store) -> None:
    async with running_worker(store, FakeModel()) as running:
        await finished_log(store, await enqueue(store, "r1", "a" * 40))
        registry = running.registry
        ttft = "chatserve_time_to_first_token_seconds_count"
        await until(lambda: registry.get_sample_value(ttft) == 1)
        await until(lambda: running.engine.stats().requests_running == 0)
        pages = {
            state: registry.get_sample_value("chatserve_kv_pages", {"state": state})
            for state in ("free", "used", "cached")
        }

    assert sum(value or 0 for value in pages.values()) == 64
    assert pages["used"] == 0
    assert pages["cached"] == 3


async def test_a_worker_that_wins_its_own_lost_request_again_starts_it_anew(store: Store) -> None:
    """The engine met the same id twice, and late tokens of the first run went into the second."""
    model = FakeModel()
    async with running_worker(store, model):
        request_id = await enqueue(store, "r1", "a", max_tokens=100)
        await log_when(store, request_id, has_text)
        await end_leases(store)
        await store.queue.reap()
        log = await finished_log(store, request_id)

    assert [entry.sequence_number for entry in log] == list(range(len(log)))
    assert text_of(log) == ("bcdefghijklmnopqrstuvwxyza" * 4)[:100]


async def test_a_cancel_that_overtakes_the_reply_of_its_claim_is_not_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener heard of the cancel before the claimed request was open, and ignored it."""
    claim, cancelled = store.queue.claim, asyncio.Event()

    async def slow_claim(*arguments: Any) -> list[Claim]:
        claims = await claim(*arguments)
        if claims:
            await store.queue.cancel(claims[0].request.request_id)
            cancelled.set()
            await asyncio.sleep(0.05)  # time for the listener to hear of it
        return claims

    monkeypatch.setattr(store.queue, "claim", slow_claim)
    async with running_worker(store, FakeModel()):
        request_id = await enqueue(store, "r1", "a", max_tokens=1000)
        log = await finished_log(store, request_id)

    assert cancelled.is_set()
    assert log[-1].event.outcome is not None
    assert log[-1].event.outcome.finish_reason is FinishReason.ABORT


async def test_a_worker_whose_engine_hangs_falls_silent(store: Store) -> None:
    """A live event loop must not keep the leases of an engine that makes no step."""
    model = FakeModel()
    model.hold()
    async with running_worker(store, model, hang_s=0.2):
        await enqueue(store, "r1", "a")
        async with asyncio.timeout(20):
            while await store.workers.live():  # noqa: ASYNC110 - a heartbeat that ends is no event
                await asyncio.sleep(0.02)

        model.release()
        async with asyncio.timeout(20):
            while not await store.workers.live():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
