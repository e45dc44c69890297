"""Puts a worker together from its settings and runs it: `chatserve engine`.

Owns the choices that depend on the machine and the model: dtype, number of pages, context length.
The parts know nothing of settings.
"""

import asyncio
import logging
import signal
from dataclasses import dataclass

import torch

from chatserve.cache.prefix_cache import PrefixCache
from chatserve.config import EngineConfig
from chatserve.engine.api import ModelCard
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.kv_pool import allocate_kv_pages, choose_num_pages
from chatserve.engine.model_runner import ModelRunner
from chatserve.engine.scheduler import Scheduler, SchedulerConfig
from chatserve.engine.worker import Worker, WorkerOptions
from chatserve.engine.worker_id import forget_dead_neighbours, new_worker_id
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.errors import ConfigError
from chatserve.kernels import get_ops
from chatserve.model.catalog import CATALOG, resolve_model
from chatserve.model.config import ModelConfig
from chatserve.model.weights import LoadedModel, load_model, resolve_dtype
from chatserve.store.connection import open_store
from chatserve.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """An engine that has not started, and what it tells the gateways of itself."""

    engine: EngineThread
    card: ModelCard


async def run_worker(config: EngineConfig) -> None:
    """Run one worker until SIGTERM or SIGINT.

    Raises:
        ModelError, ConfigError: The model or the settings do not work.
        StoreError: The store is not there at the start.
        EngineError: The engine thread died.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    store = await open_store(config.redis_url)
    try:
        await forget_dead_neighbours(store.workers)
        built = await asyncio.to_thread(build_engine, config)
        metrics = WorkerMetrics(built.engine.stats)
        worker = Worker(
            store,
            built.engine,
            built.card,
            metrics,
            WorkerOptions(
                worker_id=new_worker_id(),
                # A few more than can run, so that a free seat is taken in the very next step.
                max_claims=config.max_num_seqs + max(1, config.max_num_seqs // 4),
                metrics_url=metrics.serve(config.metrics_host, config.metrics_port),
            ),
        )
        await worker.run(stop)
    finally:
        await store.aclose()


def build_engine(config: EngineConfig) -> BuiltEngine:
    """Load the model and put an engine around it."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: torch finds no CUDA device here; use --device cpu")
    if config.num_threads is not None:
        torch.set_num_threads(config.num_threads)
    dtype = resolve_dtype(config.dtype, config.device)
    ops = get_ops(config.device, config.cpu_level)
    model = load_model(
        resolve_model(config.model, config.data_dir),
        dtype=dtype,
        device=config.device,
        cache_dir=config.data_dir / "weights",
        ops=ops,
    )
    max_model_len = _context_length(config, model.config)
    num_pages = _num_pages(config, model.config, dtype, max_model_len)
    max_model_len = min(max_model_len, num_pages * config.page_size)
    scheduler = Scheduler(
        SchedulerConfig(
            max_num_seqs=config.max_num_seqs,
            max_num_batched_tokens=config.max_num_batched_tokens,
            max_model_len=max_model_len,
            eos_token_ids=frozenset(model.eos_token_ids),
        ),
        PrefixCache(num_pages, config.page_size, enabled=config.prefix_cache),
    )
    pages = allocate_kv_pages(model.config, num_pages, config.page_size, dtype, config.device)
    runner = ModelRunner(
        model.decoder,
        pages,
        ops,
        eos_token_ids=frozenset(model.eos_token_ids),
        device=config.device,
    )
    card = _model_card(config, model, max_model_len)
    logger.info(
        "serving %s in %s on %s: %d pages of %d tokens, context %d, up to %d requests at once",
        *(card.name, str(dtype).removeprefix("torch."), config.device),
        *(num_pages, config.page_size, max_model_len, config.max_num_seqs),
    )
    core = EngineCore(scheduler, runner, Tokenizer.from_json(model.tokenizer_json))
    return BuiltEngine(EngineThread(core), card)


def _context_length(config: EngineConfig, model: ModelConfig) -> int:
    limit = model.max_position_embeddings
    if config.max_model_len is not None and config.max_model_len > limit:
        raise ConfigError(
            f"--max-model-len {config.max_model_len}: the model's context is {limit} tokens"
        )
    return config.max_model_len or limit


def _num_pages(
    config: EngineConfig, model: ModelConfig, dtype: torch.dtype, max_model_len: int
) -> int:
    if config.num_pages is not None:
        return config.num_pages
    pages_per_seat = -(-max_model_len // config.page_size)
    return choose_num_pages(
        page_bytes=config.page_size * model.kv_bytes_per_token(dtype),
        wanted_pages=config.max_num_seqs * pages_per_seat,
        kv_memory_bytes=config.kv_memory_bytes,
        device=config.device,
    )


def _model_card(config: EngineConfig, model: LoadedModel, max_model_len: int) -> ModelCard:
    known = CATALOG.get(config.model)
    return ModelCard(
        name=model.name,
        max_model_len=max_model_len,
        max_prompt_tokens=max_model_len - 1,
        vocab_size=model.config.vocab_size,
        tokenizer_json=model.tokenizer_json,
        chat_template=model.chat_template,
        bos_token=model.bos_token,
        eos_token=model.eos_token,
        eos_token_ids=model.eos_token_ids,
        adds_bos=model.adds_bos,
        default_temperature=known.temperature if known else model.default_temperature,
        default_top_p=known.top_p if known else model.default_top_p,
        default_top_k=model.default_top_k,
    )
