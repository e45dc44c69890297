"""An engine worker: claims requests from the store, runs them, writes their answers.

Owns the worker's tasks on the event loop. Knows no torch; the engine is a thread that it gives
requests to and hears from.

    claim       takes requests while there are seats, woken by the bell or by a seat that got free
    listen      waits for the bell of the model's queue and for cancels in the worker's inbox
    write       appends what the engine produced (ResponseWriter)
    beat        renews leases, with how far long prompts are, and the sign of life, unless the
                engine hangs
    reap        takes requests of workers that fell silent back into the queue, and ends those
                whose time is over while they wait
    digest      tells the gateways what the prefix cache holds (DigestPublisher)
    snapshot    shows cache and batch while somebody looks (SnapshotPublisher)
    prompts     has registered prompts ready, and tells what became of them (PromptWatch)
    access      ends what runs for tenants and keys that have lost access (AccessWatch)

A request is this worker's while its lease lasts. What ends it early: a cancel, its deadline, a
lease that was lost (somebody else has it, nothing of ours is accepted any more), or the worker's
own stop. That claims nothing more, gives what runs a bounded time to end, and hands the rest back
to its places in the queue; the reader sees a pause and no seam.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from chatserve import __version__
from chatserve.engine.access_watch import AccessWatch
from chatserve.engine.api import BEAT_TTL_MS, ModelCard, RequestId
from chatserve.engine.digest_publisher import DigestPublisher
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.hang_watch import HangWatch
from chatserve.engine.prompt_watch import PromptWatch
from chatserve.engine.response_writer import ResponseWriter
from chatserve.engine.snapshot_publisher import SnapshotPublisher
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.errors import EngineError, StoreError
from chatserve.store.connection import Store
from chatserve.store.fair_queue import DEFAULT_WEIGHTS, TokenWeights
from chatserve.store.keys import Partition
from chatserve.store.queue import STEAL_AFTER_MS, Cursor
from chatserve.store.workers import WorkerBeat
from chatserve.wording import counted

logger = logging.getLogger(__name__)

_STORE_RETRY_S = 0.5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerTimes:
    """How often a worker does what. A lease outlives several beats that fail."""

    lease_ms: int = 8_000
    beat_s: float = 1.0
    beat_ttl_ms: int = BEAT_TTL_MS
    reap_s: float = 2.0
    snapshot_s: float = 0.5
    listen_ms: int = 2_000
    hang_s: float = 60.0
    steal_after_ms: int = STEAL_AFTER_MS


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Who a worker is, how many requests it takes at once and what it charges for their tokens.

    `metrics_url` is where its metrics are; `drain_s` how long a stop waits for running answers.
    """

    worker_id: str
    max_claims: int
    metrics_url: str | None = None
    weights: TokenWeights = DEFAULT_WEIGHTS
    times: WorkerTimes = WorkerTimes()
    drain_s: float = 0.0


class Worker:
    """Runs requests of one model until it is told to stop.

    Owns: its claims and their tasks. Used from: the event loop.
    """

    def __init__(
        self,
        store: Store,
        engine: EngineThread,
        card: ModelCard,
        metrics: WorkerMetrics,
        options: WorkerOptions,
    ):
        self._store = store
        self._engine = engine
        self._card = card
        self._options = options
        self._worker_id = options.worker_id
        self._times = options.times
        self._may_claim = asyncio.Event()
        self._may_claim.set()
        self._writer = ResponseWriter(
            store.log,
            metrics,
            engine=engine,
            on_room=self._may_claim.set,
        )
        self._access_watch = AccessWatch(store.tenant_bell, engine, self._writer)
        # Held from a claim until its requests are open: a cancel of one may arrive in between.
        self._claiming = asyncio.Lock()
        self._is_draining = False
        self._fingerprint = ""
        self._hang_watch = HangWatch(engine, self._times.hang_s)
        self._prompt_watch = PromptWatch(
            store,
            engine,
            card,
            options.worker_id,
            renew_s=self._times.beat_s,
            ttl_ms=self._times.beat_ttl_ms,
        )
        self._digest = DigestPublisher(
            store.workers,
            engine,
            options.worker_id,
            every_s=self._times.beat_s,
            ttl_ms=self._times.beat_ttl_ms,
        )
        self._snapshots = SnapshotPublisher(
            store.cache_snapshots, engine, options.worker_id, every_s=self._times.snapshot_s
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, and drain.

        Raises:
            EngineError: The engine thread died. Its requests stay leased, so that they count as
                lost: one that kills every engine it meets must not be tried for ever.
        """
        loop = asyncio.get_running_loop()
        died: asyncio.Future[BaseException] = loop.create_future()
        self._fingerprint = await self._store.workers.publish_card(self._card)
        self._engine.start(
            lambda outputs: _call_soon(loop, self._writer.take, outputs),
            lambda error: _call_soon(loop, died.set_result, error),
            lambda reports: _call_soon(loop, self._prompt_watch.take, reports),
        )
        await self._beat()
        tasks = [asyncio.create_task(self._writer.run(), name="write"), *self._store_tasks()]
        stopped = asyncio.create_task(self._until_drained(stop), name="stop")
        try:
            ends: list[asyncio.Future[Any]] = [stopped, died, *tasks]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()  # a task ends by an error only: a bug that must be seen
        finally:
            await _cancel([stopped, *tasks])
            # It ends with the step that runs, for which nobody else has to stand still.
            await asyncio.to_thread(self._engine.stop)
        if died.done():
            raise EngineError("the engine thread died, see the log") from died.result()
        await self._hand_back()

    async def _until_drained(self, stop: asyncio.Event) -> None:
        """Return after `stop`, once no answer runs any more or their time is over."""
        await stop.wait()
        async with self._claiming:
            self._is_draining = True
        if not self._writer.open_request_ids or not self._options.drain_s:
            return
        logger.info(
            "draining: %s to end first", counted(len(self._writer.open_request_ids), "answer")
        )
        with suppress(StoreError):  # the next regular beat tells it as well
            await self._beat()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._options.drain_s):
                await self._until_empty()

    async def _until_empty(self) -> None:
        while self._writer.open_request_ids:
            await self._may_claim.wait()  # which is set whenever an answer has ended
            self._may_claim.clear()

    def _store_tasks(self) -> list[asyncio.Task[None]]:
        bodies = {
            "claim": self._claim,
            **{f"listen {each.root}": self._listener(each) for each in self._store.partitions.all},
            "beat": _every(self._times.beat_s, self._beat),
            "digest": self._digest.publish,
            "snapshot": self._snapshots.publish,
            "reap": _every(self._times.reap_s, self._reap),
            **self._prompt_watch.bodies,
            **self._access_watch.bodies,
        }
        return [asyncio.create_task(_persist(body), name=name) for name, body in bodies.items()]

    async def _claim(self) -> None:
        """Wait for a reason to claim, then claim what can start soon, and no more."""
        await self._may_claim.wait()
        self._may_claim.clear()
        if self._hang_watch.is_hanging():  # it would only lose what it takes
            return
        seats = self._options.max_claims - len(self._writer.open_request_ids)
        if seats <= 0:
            return
        try:
            async with self._claiming:
                if self._is_draining:
                    return
                claims = await self._store.queue.claim(
                    self._worker_id,
                    self._card.name,
                    seats,
                    self._times.lease_ms,
                    self._options.weights,
                    self._times.steal_after_ms,
                )
                for claim in claims:
                    self._writer.open(claim)
                self._access_watch.end_revoked()
        except StoreError:
            self._may_claim.set()
            raise
        if len(claims) == seats:
            self._may_claim.set()

    def _listener(self, partition: Partition) -> Callable[[], Awaitable[None]]:
        cursor, loop = Cursor(), asyncio.get_running_loop()

        async def listen() -> None:
            nonlocal cursor
            wakeup = await self._store.queue.wait_for_work(
                self._worker_id, self._card.name, cursor, self._times.listen_ms, partition
            )
            cursor = wakeup.cursor
            if wakeup.cancelled:
                async with self._claiming:
                    self._writer.cancel(wakeup.cancelled)
            # Without news it claims all the same: a bell may be lost with its connection.
            self._may_claim.set()
            if wakeup.new_work:  # And once more when what it left to another worker is anybody's.
                loop.call_later(self._times.steal_after_ms / 1e3, self._may_claim.set)

        return listen

    async def _beat(self) -> None:
        """Renew leases and the sign of life. A hung engine falls silent, and others take over."""
        if self._hang_watch.is_hanging():
            logger.error("the engine has made no step for %g s, falling silent", self._times.hang_s)
            return
        lost = await self._store.queue.extend_leases(
            self._worker_id,
            self._writer.open_request_ids,
            self._times.lease_ms,
            prefills=self._writer.prefills,
        )
        self._give_up(lost)
        beat = WorkerBeat(
            worker_id=self._worker_id,
            model=self._card.name,
            card_fingerprint=self._fingerprint,
            version=__version__,
            stats=self._engine.stats(),
            metrics_url=self._options.metrics_url,
            is_draining=self._is_draining,
            max_claims=self._options.max_claims,
            digest_number=self._digest.number,
        )
        if not await self._store.workers.heartbeat(beat, self._times.beat_ttl_ms):
            self._fingerprint = await self._store.workers.publish_card(self._card)
            self._digest.repeat()

    def _give_up(self, lost: Sequence[RequestId]) -> None:
        """Forget requests that are not ours any more. One that has just ended is not lost."""
        lost = [request_id for request_id in lost if request_id in self._writer.open_request_ids]
        if lost:
            self._writer.drop(lost)
            self._may_claim.set()

    async def _reap(self) -> None:
        reaped = await self._store.queue.reap()
        if reaped:
            logger.warning(
                "took back %s from a worker that fell silent", counted(len(reaped), "request")
            )
        overdue = await self._store.queue.end_overdue()
        if overdue:
            logger.warning("%s waited longer than the timeout", counted(len(overdue), "request"))

    async def _hand_back(self) -> None:
        """Write what is done, give the rest back, and say goodbye."""
        await self._writer.flush()
        open_request_ids = self._writer.open_request_ids
        if open_request_ids:
            logger.info("handing %s back to the queue", counted(len(open_request_ids), "request"))
            await self._store.queue.release(self._worker_id, open_request_ids)
        await self._store.workers.remove(self._worker_id)


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[T], object], value: T) -> None:
    """Call back on the loop from the engine thread; a loop that has closed needs no news."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback, value)


def _every(seconds: float, body: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    async def wait_and_do() -> None:
        await asyncio.sleep(seconds)
        await body()

    return wait_and_do


async def _persist(body: Callable[[], Awaitable[None]]) -> None:
    """Repeat `body`, also while the store is away."""
    while True:
        try:
            await body()
        except StoreError as error:
            logger.log(error.log_level, "the store is away: %s", error)
            await asyncio.sleep(_STORE_RETRY_S)


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
