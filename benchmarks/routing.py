"""What routing is worth with two workers and eight tenants: hit rate and time to the first token.

    python -m benchmarks.routing [--seconds 40] [--rate 10] [--quick]

All is real but the model: two workers on one store, each with the scheduler and the prefix cache
of the service in an engine thread of its own, the queue with its leases and its fair turns, the
heartbeats, the digests and the gateway's router. A step takes a fixed time and more for each token
that it computes, as on a small machine. Eight tenants have long system prompts, of which one
worker's pool holds six; their requests come at random times.

Compared with the router are: no routes, so that whoever is free takes what comes next; a worker at
random, in turn, or the one with the fewest answers in flight. Each starts with cold caches; what is
sent in the first quarter of the time is not counted.
"""

import argparse
import asyncio
import itertools
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.byte_model import byte_card
from benchmarks.record import write_record
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.engine.api import EventKind, GenerationRequest, RequestId, SamplingParams
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.fake import FakeRunner
from chatserve.engine.scheduler import Scheduler, SchedulerConfig, SchedulerOutput
from chatserve.engine.worker import Worker, WorkerOptions
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.gateway.models import ServedModels
from chatserve.gateway.router import Router
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.log_readers import LogReaders
from chatserve.store.responses import ResponseRecord
from chatserve.text.tokenizer import Tokenizer

MODEL = "paced"
WORKERS = ("w1", "w2")
NUM_TENANTS = 8
SYSTEM_TOKENS = 640
QUESTION_TOKENS = 48
OUTPUT_TOKENS = 8
PAGE_SIZE = 16
NUM_PAGES = 256
STEP_S = 0.004
TOKEN_S = 0.0002
SEATS = 8
MAX_CLAIMS = SEATS + 2

_MAX_QUEUE = 10_000
_BEATS_TO_LEARN_S = 2.5

Route = Callable[[GenerationRequest], AbstractContextManager[str | None]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client saw of one answer."""

    ttft_s: float
    num_prompt: int
    num_cached: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What one way to route did."""

    routing: str
    num_answers: int
    hit_rate: float
    ttft_p50_s: float
    ttft_p90_s: float


class PacedRunner:
    """Computes as `FakeRunner` does, and takes the time that a step would.

    Owns: nothing but the pace. Used from: the engine thread.
    """

    def __init__(self, step_s: float, token_s: float):
        self._fake = FakeRunner(NUM_PAGES, PAGE_SIZE, lambda history: ord("a"))
        self._step_s = step_s
        self._token_s = token_s

    def execute(self, output: SchedulerOutput) -> Mapping[RequestId, int | None]:
        num_tokens = sum(run.end - run.start for run in output.scheduled)
        time.sleep(self._step_s + num_tokens * self._token_s)
        return self._fake.execute(output)


@asynccontextmanager
async def running_worker(
    store: Store, worker_id: str, step_s: float = STEP_S, token_s: float = TOKEN_S
) -> AsyncIterator[None]:
    """Run a worker with an empty cache."""
    card = byte_card(MODEL, NUM_PAGES * PAGE_SIZE)
    config = SchedulerConfig(SEATS, 256, card.max_model_len, frozenset(card.eos_token_ids))
    scheduler = Scheduler(config, PrefixCache(NUM_PAGES, PAGE_SIZE))
    runner = PacedRunner(step_s, token_s)
    engine = EngineThread(EngineCore(scheduler, runner, Tokenizer.from_card(card)))
    metrics = WorkerMetrics(engine.stats)
    worker = Worker(store, engine, card, metrics, WorkerOptions(worker_id, MAX_CLAIMS))
    stop = asyncio.Event()
    running = asyncio.create_task(worker.run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


class Load:
    """Requests of all tenants at random times, the same for every way to route.

    Owns: what was seen, and what is in flight. Used from: the event loop.
    """

    def __init__(self, store: Store, logs: LogReaders, seed: int = 0):
        self.in_flight = Counter[str]()
        self._store = store
        self._logs = logs
        self._rng = random.Random(seed)
        self._systems = [self._tokens(SYSTEM_TOKENS) for _ in range(NUM_TENANTS)]

    async def run(self, route: Route, rate: float, seconds: float) -> list[Seen]:
        """Send for so long, wait for all answers, and return what was seen."""
        asking: list[asyncio.Task[Seen]] = []
        loop = asyncio.get_running_loop()
        due = loop.time()
        for number in range(round(rate * seconds)):
            asking.append(asyncio.create_task(self.ask(f"resp_{number}", route)))
            due += self._rng.expovariate(rate)
            await asyncio.sleep(max(0.0, due - loop.time()))
        return await asyncio.gather(*asking)

    async def ask(self, name: str, route: Route, num_tokens: int = OUTPUT_TOKENS) -> Seen:
        """Send the question of a random tenant, and read the answer to its end."""
        tenant = self._rng.randrange(NUM_TENANTS)
        prompt = (*self._systems[tenant], *self._tokens(QUESTION_TOKENS))
        sampling = SamplingParams(max_tokens=num_tokens, seed=0)
        request = GenerationRequest(RequestId(name), MODEL, prompt, sampling, f"tenant-{tenant}")
        record = ResponseRecord(
            response_id=request.request_id,
            model=MODEL,
            created_at=1,
            ttl_s=600,
            assistant_message_id=name,
        )
        with route(request) as worker_id:
            self.in_flight[worker_id or ""] += 1
            seen = await self._read(request, record, worker_id)
            self.in_flight[worker_id or ""] -= 1
        return seen

    async def _read(
        self, request: GenerationRequest, record: ResponseRecord, worker_id: str | None
    ) -> Seen:
        began_s, ttft_s, num_cached = time.perf_counter(), 0.0, 0
        await self._store.queue.enqueue(request, record, max_queue=_MAX_QUEUE, route=worker_id)
        async with aclosing(self._logs.follow(request.request_id)) as entries:
            async for entry in entries:
                if entry.event.kind is EventKind.IN_PROGRESS:
                    num_cached = entry.event.cached_tokens
                if entry.event.kind is EventKind.DELTA and not ttft_s:
                    ttft_s = time.perf_counter() - began_s
        return Seen(ttft_s, len(request.prompt_token_ids), num_cached)

    def _tokens(self, count: int) -> tuple[int, ...]:
        return tuple(self._rng.choices(range(256), k=count))


async def measure(url: str, name: str, rate: float, seconds: float) -> Figures:
    """Return the figures of one way to route, from cold caches on."""
    store = await open_store(url)
    await store.commands.call("FLUSHALL")
    logs, models = LogReaders(store), ServedModels(store.workers)
    router = Router(store.workers, models)
    logs.start()
    try:
        async with running_worker(store, WORKERS[0]), running_worker(store, WORKERS[1]):
            await models.start()
            router.start()
            await asyncio.sleep(_BEATS_TO_LEARN_S)
            load = Load(store, logs)
            seen = await load.run(_routes(load, router)[name], rate, seconds)
            seen = seen[len(seen) // 4 :]
    finally:
        await router.aclose()
        await models.aclose()
        await logs.aclose()
        await store.aclose()
    ttfts = sorted(each.ttft_s for each in seen)
    return Figures(
        routing=name,
        num_answers=len(seen),
        hit_rate=sum(each.num_cached for each in seen) / sum(each.num_prompt for each in seen),
        ttft_p50_s=ttfts[len(ttfts) // 2],
        ttft_p90_s=ttfts[len(ttfts) * 9 // 10],
    )


def _routes(load: Load, router: Router) -> dict[str, Route]:
    turns, rng = itertools.cycle(WORKERS), random.Random(1)
    return {
        "none": lambda request: nullcontext(None),
        "random": lambda request: nullcontext(rng.choice(WORKERS)),
        "round robin": lambda request: nullcontext(next(turns)),
        "least loaded": lambda request: nullcontext(min(WORKERS, key=load.in_flight.__getitem__)),
        "prefix and load": router.sending,
    }


ROUTINGS = ("none", "random", "round robin", "least loaded", "prefix and load")


async def compare(rate: float, seconds: float) -> list[Figures]:
    """Return the figures of every way to route, on a store of our own."""
    with tempfile.TemporaryDirectory(prefix="chatserve-bench-") as folder:
        server = EmbeddedServer(Path(folder) / "store")
        await server.start()
        try:
            return [await measure(server.url, name, rate, seconds) for name in ROUTINGS]
        finally:
            await server.stop()


def print_table(figures: list[Figures]) -> None:
    print(f"{'routing':<16}{'answers':>8}{'hit rate':>10}{'TTFT p50':>11}{'p90':>9}")
    for each in figures:
        print(
            f"{each.routing:<16}{each.num_answers:>8}{each.hit_rate:>10.1%}"
            f"{1e3 * each.ttft_p50_s:>8.0f} ms{1e3 * each.ttft_p90_s:>6.0f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=40.0, help="of sending, for each routing")
    parser.add_argument("--rate", type=float, default=10.0, help="requests a second")
    parser.add_argument("--quick", action="store_true", help="two seconds each, and no record")
    args = parser.parse_args()
    seconds = 2.0 if args.quick else args.seconds
    figures = asyncio.run(compare(args.rate, seconds))
    print_table(figures)
    if not args.quick:
        record = {
            "rate": args.rate,
            "seconds": seconds,
            "routings": [asdict(each) for each in figures],
        }
        print(f"raw figures: {write_record('routing', record)}")


if __name__ == "__main__":
    main()
