"""A worker that is told to stop while answers run: they end, or are handed back in time."""

import asyncio

from engine.worker_helpers import (
    RunningWorker,
    enqueue,
    finished_log,
    log_when,
    running_worker,
    text_of,
    until,
)
from gateway.fake_model import MODEL, FakeModel

from chatserve.engine.api import EventKind
from chatserve.store.connection import Store

PATIENT_S = 60.0


async def test_a_running_answer_ends_and_nothing_new_is_claimed(store: Store) -> None:
    model = FakeModel()
    running = RunningWorker(store, "w1", model.next_token, drain_s=PATIENT_S)
    model.hold()
    first = await enqueue(store, "r1", "a", max_tokens=5)
    await log_when(store, first, lambda log: log[-1].event.kind is EventKind.IN_PROGRESS)

    running.stop.set()
    await _until_draining(store)
    await enqueue(store, "r2", "a")
    model.release()
    log = await finished_log(store, first)
    await running.task

    assert text_of(log) == "bcdef"
    assert await store.queue.depth(MODEL) == 1
    assert await store.workers.live() == []


async def test_an_answer_that_runs_too_long_is_handed_back_without_a_seam(store: Store) -> None:
    model = FakeModel()
    running = RunningWorker(store, "w1", model.next_token, drain_s=0.05)
    request_id = await enqueue(store, "r1", "a", max_tokens=500)
    await log_when(store, request_id, lambda log: bool(text_of(log)))

    running.stop.set()
    await running.task
    before = await store.log.read(request_id)
    async with running_worker(store, FakeModel(), "second"):
        log = await finished_log(store, request_id)

    assert not before[-1].event.kind.is_terminal
    assert log[: len(before)] == before
    assert text_of(log) == ("bcdefghijklmnopqrstuvwxyza" * 20)[:500]


async def test_a_cancel_reaches_an_answer_while_its_worker_drains(store: Store) -> None:
    model = FakeModel()
    running = RunningWorker(store, "w1", model.next_token, drain_s=PATIENT_S)
    model.hold()
    request_id = await enqueue(store, "r1", "a", max_tokens=5)
    await log_when(store, request_id, lambda log: log[-1].event.kind is EventKind.IN_PROGRESS)

    running.stop.set()
    await _until_draining(store)
    await store.queue.cancel(request_id)
    log = await finished_log(store, request_id)
    model.release()
    await running.task

    assert log[-1].event.kind is EventKind.INCOMPLETE


async def test_nobody_waits_with_a_worker_for_the_last_step(store: Store) -> None:
    model = FakeModel()
    running = RunningWorker(store, "w1", model.next_token, drain_s=0)
    model.hold()
    await enqueue(store, "r1", "a")
    await until(lambda: model.is_waiting)

    running.stop.set()
    async with asyncio.timeout(10):
        await asyncio.sleep(0.1)  # it comes to its end, where the engine's thread is waited for
        model.release()
        await running.task

    assert await store.queue.depth(MODEL) == 1


async def test_an_idle_worker_stops_without_draining(store: Store) -> None:
    running = RunningWorker(store, "w1", FakeModel().next_token, drain_s=PATIENT_S)
    await until(lambda: running.engine.stats().num_pages > 0)

    running.stop.set()
    async with asyncio.timeout(5):
        await running.task

    assert await store.workers.live() == []


async def _until_draining(store: Store) -> None:
    async with asyncio.timeout(20):
        while not any(beat.is_draining for beat in await store.workers.live()):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
