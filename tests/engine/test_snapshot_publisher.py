"""A worker shows its cache while it is watched, and does nothing for it while it is not."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from engine.worker_helpers import enqueue, finished_log, running_worker
from gateway.fake_model import FakeModel, make_card

from chatserve.cache_snapshot import CacheSnapshot
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.fake import build_fake_engine
from chatserve.engine.scheduler import SchedulerConfig
from chatserve.engine.snapshot_publisher import SnapshotPublisher
from chatserve.store.connection import Store
from chatserve.text.tokenizer import Tokenizer

TTL_MS = 60_000


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[EngineThread]:
    config = SchedulerConfig(4, 64, 1024, frozenset())
    tokenizer = Tokenizer.from_card(make_card())
    engine = build_fake_engine(tokenizer, config, FakeModel().next_token, num_pages=64)
    engine.start(lambda _: None, lambda _: None, lambda _: None)
    yield engine
    engine.stop()


async def test_unwatched_worker_publishes_nothing(store: Store, engine: EngineThread) -> None:
    publisher = SnapshotPublisher(store.cache_snapshots, engine, "w1", every_s=0.0)
    await store.cache_snapshots.watch(["w2"], TTL_MS)

    await publisher.publish()

    assert await store.cache_snapshots.read(["w1"]) == {}


async def test_watched_worker_shows_its_engine(store: Store, engine: EngineThread) -> None:
    publisher = SnapshotPublisher(store.cache_snapshots, engine, "w1", every_s=0.001)
    await store.cache_snapshots.watch(["w1"], TTL_MS)

    await publisher.publish()

    shown = await store.cache_snapshots.read(["w1"])
    assert {name: each.pages for name, each in shown.items()} == {"w1": "." * 64}


async def test_worker_answers_to_a_watcher(store: Store) -> None:
    async with running_worker(store, FakeModel()):
        request_id = await enqueue(store, "r1", "a" * 40)
        await finished_log(store, request_id)
        await store.cache_snapshots.watch(["w1"], TTL_MS)
        shown = await snapshot_of(store)

    assert shown.requests == []
    assert [node.num_tokens for node in shown.nodes] == [44]
    assert sum(counts.prefill_tokens for each in shown.intervals for counts in each.counts) == 40


async def snapshot_of(store: Store) -> CacheSnapshot:
    """Return the first snapshot of the worker, waiting for it."""
    async with asyncio.timeout(20):
        while not (shown := await store.cache_snapshots.read(["w1"])):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
    return shown["w1"]
