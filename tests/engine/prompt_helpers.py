"""A worker whose engine pins prompts and saves them, and what their tests ask of it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine.prefix_helpers import NO_LIMIT
from engine.worker_helpers import TIMES
from gateway.fake_model import MODEL, FakeModel, make_card

from chatserve.cache.pins import PinLimits
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.engine.api import (
    GenerationRequest,
    ModelCard,
    PrefixState,
    RequestId,
    SamplingParams,
    Usage,
)
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.fake import FakeRunner
from chatserve.engine.prefix_files import PrefixFiles
from chatserve.engine.saved_prefixes import SavedPrefixes
from chatserve.engine.scheduler import Scheduler, SchedulerConfig
from chatserve.engine.worker import Worker, WorkerOptions
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.store.connection import Store
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.prompt_news import PromptStatus
from chatserve.store.responses import ResponseRecord
from chatserve.text.chat_template import ChatMessage
from chatserve.text.prompt import PromptEncoder
from chatserve.text.tokenizer import Tokenizer

PAGE_SIZE = 16
WORKER_ID = "w1"
ENCODER = PromptEncoder(make_card())


@dataclass(frozen=True, slots=True)
class PinningEngine:
    """What a test may say about an engine with pins; it saves into `folder`, if there is one."""

    folder: Path | None = None
    num_pages: int = 256
    max_pinned_pages: int = 128
    tenant_pinned_pages: int = 64
    cache_scope: CacheScope = CacheScope.TENANT
    card: ModelCard = field(default_factory=make_card)

    def build(self, model: FakeModel) -> EngineThread:
        cache = PrefixCache(
            self.num_pages,
            PAGE_SIZE,
            pin_limits=PinLimits(self.max_pinned_pages, self.tenant_pinned_pages),
        )
        config = SchedulerConfig(
            max_num_seqs=4,
            max_num_batched_tokens=512,
            max_model_len=self.card.max_model_len,
            eos_token_ids=frozenset(self.card.eos_token_ids),
        )
        runner = FakeRunner(self.num_pages, PAGE_SIZE, model.next_token)
        core = EngineCore(
            Scheduler(config, cache, ScopeMap(self.cache_scope)),
            runner,
            Tokenizer.from_card(self.card),
            saved=self._saved(runner),
        )
        return EngineThread(core)

    def _saved(self, runner: FakeRunner) -> SavedPrefixes | None:
        if self.folder is None:
            return None
        layout = runner.pool_layout("weights")
        return SavedPrefixes(PrefixFiles(self.folder, layout, max_bytes=NO_LIMIT), runner, layout)


@asynccontextmanager
async def pinning_worker(
    store: Store, settings: PinningEngine | None = None, worker_id: str = WORKER_ID
) -> AsyncIterator[EngineThread]:
    """Run a worker on a fake engine until the context ends, and give the engine."""
    settings = settings or PinningEngine()
    engine = settings.build(FakeModel())
    options = WorkerOptions(worker_id, max_claims=6, times=TIMES)
    worker = Worker(store, engine, settings.card, WorkerMetrics(engine.stats), options)
    stop = asyncio.Event()
    task = asyncio.create_task(worker.run(stop))
    try:
        yield engine
    finally:
        stop.set()
        await task


async def status_of(store: Store, prompt: NamedPrompt, worker_id: str = WORKER_ID) -> PromptStatus:
    """Return what a worker made of a prompt once it has."""
    async with asyncio.timeout(20):
        while True:
            for status in (await store.prompt_news.read([worker_id]))[worker_id]:
                is_final = status.state is not PrefixState.WARMING
                if status.revision == prompt.revision and is_final:
                    return status
            await asyncio.sleep(0.005)


async def wait_until_forgotten(store: Store, prompt: NamedPrompt) -> None:
    """Return once the worker says nothing of a prompt any more."""
    async with asyncio.timeout(20):
        while True:
            statuses = (await store.prompt_news.read([WORKER_ID]))[WORKER_ID]
            if prompt.name not in [status.name for status in statuses]:
                return
            await asyncio.sleep(0.005)


_NUMBERS: Iterator[int] = iter(range(10**6))


async def ask(store: Store, tenant: str, system: str, question: str) -> Usage:
    """Let a tenant ask under a system message, and return what it was charged."""
    messages = [ChatMessage("system", system), ChatMessage("user", question)]
    request = GenerationRequest(
        RequestId(f"r{next(_NUMBERS)}"),
        MODEL,
        ENCODER.prompt_token_ids(messages),
        SamplingParams(max_tokens=4, seed=1),
        tenant=tenant,
    )
    record = ResponseRecord(
        response_id=request.request_id,
        model=MODEL,
        created_at=1,
        ttl_s=1000,
        assistant_message_id="answer",
    )
    await store.queue.enqueue(request, record, max_queue=100)
    async with asyncio.timeout(20):
        while True:
            found = await store.responses.get(request.request_id)
            if found is not None and found.outcome is not None:
                return found.outcome.usage
            await asyncio.sleep(0.005)
