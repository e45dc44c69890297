"""A worker on the fake engine, and what its tests ask of the store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from gateway.fake_model import MODEL, FakeModel, make_card

from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.fake import NextToken, build_fake_engine
from chatserve.engine.scheduler import SchedulerConfig
from chatserve.engine.worker import Worker, WorkerOptions, WorkerTimes
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.fair_queue import DEFAULT_WEIGHTS, Place, TokenWeights
from chatserve.store.queue import STEAL_AFTER_MS
from chatserve.store.response_log import LogEntry
from chatserve.store.responses import ResponseRecord
from chatserve.text.tokenizer import Tokenizer

STEP_S = 0.002
"""Slow enough that a test can act in the middle of a long answer."""

TIMES = WorkerTimes(beat_s=0.05, beat_ttl_ms=300, reap_s=0.05, listen_ms=100)


class RunningWorker:
    """A worker whose task the test may stop orderly, or kill."""

    def __init__(
        self,
        store: Store,
        name: str,
        next_token: NextToken,
        *,
        num_pages: int = 64,
        hang_s: float = 60.0,
        steal_after_ms: int = STEAL_AFTER_MS,
        weights: TokenWeights = DEFAULT_WEIGHTS,
        drain_s: float = 0.0,
    ):
        card = make_card()
        config = SchedulerConfig(4, 64, num_pages * 16, frozenset(card.eos_token_ids))
        tokenizer = Tokenizer.from_card(card)
        self.engine: EngineThread = build_fake_engine(
            tokenizer, config, next_token, num_pages=num_pages, step_s=STEP_S
        )
        metrics = WorkerMetrics(self.engine.stats)
        times = replace(TIMES, hang_s=hang_s, steal_after_ms=steal_after_ms)
        options = WorkerOptions(name, max_claims=6, weights=weights, times=times, drain_s=drain_s)
        self.worker = Worker(store, self.engine, card, metrics, options)
        self.registry = metrics.registry
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.worker.run(self.stop))

    async def kill(self) -> None:
        """End it as a crash would, as far as the store can tell: nothing is handed back."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def running_worker(
    store: Store,
    model: FakeModel,
    name: str = "w1",
    *,
    num_pages: int = 64,
    hang_s: float = 60.0,
) -> AsyncIterator[RunningWorker]:
    running = RunningWorker(store, name, model.next_token, num_pages=num_pages, hang_s=hang_s)
    try:
        yield running
    finally:
        model.release()
        running.stop.set()
        await asyncio.gather(running.task, return_exceptions=True)


async def enqueue(
    store: Store,
    name: str,
    prompt: str,
    *,
    model_name: str = MODEL,
    timeout_ms: int | None = None,
    route: str | None = None,
    **sampling: object,
) -> RequestId:
    """Queue a raw prompt; the fake model goes on through the alphabet."""
    card = make_card()
    prompt_ids = tuple(Tokenizer.from_card(card).encode(prompt))
    params = SamplingParams(seed=1, **{"max_tokens": 5, **sampling})  # type: ignore[arg-type]
    request = GenerationRequest(
        RequestId(name), model_name, prompt_ids, params, timeout_ms=timeout_ms
    )
    record = ResponseRecord(
        response_id=request.request_id,
        model=model_name,
        created_at=1,
        ttl_s=1000,
        assistant_message_id=f"msg_{name}",
    )
    place = await store.queue.enqueue(request, record, max_queue=100, route=route)
    assert isinstance(place, Place)
    return request.request_id


async def finished_log(store: Store, request_id: RequestId) -> list[LogEntry]:
    """Return the log once it has its terminal event."""
    return await log_when(store, request_id, lambda log: log[-1].event.kind.is_terminal)


async def log_when(
    store: Store, request_id: RequestId, condition: Callable[[list[LogEntry]], bool]
) -> list[LogEntry]:
    async with asyncio.timeout(20):
        while True:
            log = await store.log.read(request_id)
            if condition(log):
                return log
            await asyncio.sleep(0.005)


def text_of(log: list[LogEntry]) -> str:
    return "".join(entry.event.text for entry in log)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - conditions of the code under test have no event
            await asyncio.sleep(0.005)


async def end_leases(store: Store) -> None:
    """Make every lease run out now, without waiting for it."""
    for request_id in await store.commands.call("ZRANGE", keys.FIRST.key(keys.LEASES), 0, -1):
        await store.commands.call("ZADD", keys.FIRST.key(keys.LEASES), "XX", 0, request_id)
