"""A worker and the rules of the queue: what it charges, and whom it ends when time is over."""

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
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.fair_queue import TokenWeights


async def test_an_answer_that_runs_past_its_deadline_fails_with_what_it_has(store: Store) -> None:
    model = FakeModel()
    async with running_worker(store, model) as running:
        model.hold()
        model.allow(3)
        request_id = await enqueue(store, "r1", "a", max_tokens=2000, timeout_ms=1000)

        log = await finished_log(store, request_id)
        model.release()
        await until(lambda: running.engine.stats().pages_used == 0)

    outcome, record = log[-1].event.outcome, await store.responses.get(request_id)
    assert outcome is not None
    assert (outcome.finish_reason, outcome.error_code) == (FinishReason.ERROR, "deadline_exceeded")
    assert [entry.event.kind.is_terminal for entry in log].count(True) == 1
    assert record is not None
    assert (record.status.value, record.output_text) == ("failed", text_of(log))
    assert text_of(log) == "bcd"
    assert running.engine.stats().requests_running == 0


async def test_an_answer_in_time_is_not_touched(store: Store) -> None:
    async with running_worker(store, FakeModel()):
        request_id = await enqueue(store, "r1", "abc", timeout_ms=60_000)
        log = await finished_log(store, request_id)

    assert text_of(log) == "defgh"
    assert log[-1].event.kind is EventKind.INCOMPLETE


async def test_a_cancel_before_the_deadline_is_the_only_end(store: Store) -> None:
    model = FakeModel()
    async with running_worker(store, model):
        model.hold()
        request_id = await enqueue(store, "r1", "a", timeout_ms=400)
        other = await enqueue(store, "r2", "a", timeout_ms=500)
        await log_when(store, request_id, lambda log: len(log) > 2)

        await store.queue.cancel(request_id)
        cancelled = await finished_log(store, request_id)
        await finished_log(store, other)  # the deadline of both has passed

        assert await store.log.read(request_id) == cancelled

    assert cancelled[-1].event.outcome is not None
    assert cancelled[-1].event.outcome.finish_reason is FinishReason.ABORT


async def test_a_take_over_does_not_begin_the_time_anew(store: Store) -> None:
    first = RunningWorker(store, "lost", FakeModel().next_token)
    request_id = await enqueue(store, "r1", "a", max_tokens=2000, timeout_ms=60_000)
    await log_when(store, request_id, lambda log: len(text_of(log)) >= 3)
    await first.kill()
    before = await store.log.read(request_id)
    key = keys.FIRST.key(keys.REQUEST + request_id)
    await store.commands.call("HINCRBY", key, "enqueued_ms", -59_500)
    await store.commands.call("HINCRBY", key, "deadline_ms", -59_500)
    await end_leases(store)

    second = FakeModel()
    second.hold()
    async with running_worker(store, second, "second"):
        log = await finished_log(store, request_id)

    assert log[: len(before)] == before
    assert text_of(log) == text_of(before)
    assert log[-1].event.outcome is not None
    assert log[-1].event.outcome.error_code == "deadline_exceeded"


async def test_a_worker_ends_what_waits_too_long_for_any_model(store: Store) -> None:
    request_id = await enqueue(store, "r1", "a", timeout_ms=1, model_name="unserved")

    async with running_worker(store, FakeModel()):
        log = await finished_log(store, request_id)

    assert log[-1].event.outcome is not None
    assert log[-1].event.outcome.error_code == "deadline_exceeded"


async def test_a_worker_charges_what_its_operator_says(store: Store) -> None:
    model = FakeModel()
    running = RunningWorker(store, "w1", model.next_token, weights=TokenWeights(10, 100))
    model.hold()
    model.allow(3)
    request_id = await enqueue(store, "r1", "abc", max_tokens=2000)
    await log_when(store, request_id, lambda log: len(text_of(log)) == 3)

    charged = await store.commands.call("ZSCORE", keys.FIRST.key(keys.COUNTERS + MODEL), "default")

    assert float(charged) == 3 * 10 + 3 * 100
    model.release()
    await running.kill()
