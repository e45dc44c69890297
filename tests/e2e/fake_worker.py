"""A program: a real worker on a model that repeats its reader's words.

    fake_worker.py REDIS_URL WORKER_ID STEP_S HANG_FILE

Its engine thread hangs in the middle of a step for as long as HANG_FILE exists.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gateway.fake_model import FakeModel, make_card

from chatserve.engine.fake import build_fake_engine
from chatserve.engine.scheduler import SchedulerConfig
from chatserve.engine.worker import Worker, WorkerOptions, WorkerTimes
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.log import configure_logging
from chatserve.store.connection import open_store
from chatserve.text.tokenizer import Tokenizer

NUM_PAGES = 512

TIMES = WorkerTimes(
    lease_ms=2_000, beat_s=0.2, beat_ttl_ms=1_000, reap_s=0.2, listen_ms=300, hang_s=1.0
)


async def run(redis_url: str, worker_id: str, step_s: float, hang_file: Path) -> None:
    card, model = make_card(), FakeModel()
    config = SchedulerConfig(8, 512, card.max_model_len, frozenset(card.eos_token_ids))

    def next_token(history: Sequence[int]) -> int | None:
        while hang_file.exists():
            time.sleep(0.02)
        return model.next_token(history)

    engine = build_fake_engine(
        Tokenizer.from_card(card), config, next_token, num_pages=NUM_PAGES, step_s=step_s
    )
    metrics = WorkerMetrics(engine.stats)
    options = WorkerOptions(
        worker_id, max_claims=10, metrics_url=metrics.serve("127.0.0.1", 0), times=TIMES
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    store = await open_store(redis_url)
    await Worker(store, engine, card, metrics, options).run(stop)
    await store.aclose()


if __name__ == "__main__":
    configure_logging("warning", "engine")
    asyncio.run(run(sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])))
