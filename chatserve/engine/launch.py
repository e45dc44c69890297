"""Puts a worker together from its settings and runs it: `chatserve engine`.

Owns the order in which the parts are made. What depends on the machine and the model (pages,
context, limits of a step) comes from the plan, the same that `chatserve plan` prints; the parts
know nothing of settings.
"""

import asyncio
import logging
import signal
from dataclasses import dataclass

from chatserve.cache.pins import PinLimits
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.scope import Retention
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.config import EngineConfig
from chatserve.engine.api import ModelCard
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.kv_pool import allocate_kv_pages
from chatserve.engine.model_runner import ModelRunner
from chatserve.engine.model_source import load_configured
from chatserve.engine.prefix_files import PrefixFiles
from chatserve.engine.saved_prefixes import SavedPrefixes
from chatserve.engine.scheduler import Scheduler, SchedulerConfig
from chatserve.engine.start_log import log_backend, log_model, log_plan
from chatserve.engine.worker import Worker, WorkerOptions
from chatserve.engine.worker_id import forget_dead_neighbours, new_worker_id
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.kernels import get_ops
from chatserve.model.catalog import CATALOG
from chatserve.model.weights import LoadedModel
from chatserve.planning.dtype import resolve_dtype
from chatserve.planning.machine import one_pool, require_device, use_threads
from chatserve.planning.plan import Plan
from chatserve.planning.sources import check_before_loading, plan_for_loaded
from chatserve.planning.step_time import ModelCost
from chatserve.store.connection import open_store
from chatserve.store.fair_queue import TokenWeights
from chatserve.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

_TENANTS_THAT_PIN_THEIR_SHARE = 4
"""Among how many tenants what may be pinned is divided, where no quota is given."""


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """An engine that has not started, what it tells the gateways of itself, and its limits."""

    engine: EngineThread
    card: ModelCard
    plan: Plan


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
        max_num_seqs = built.plan.max_num_seqs.value
        worker = Worker(
            store,
            built.engine,
            built.card,
            metrics,
            WorkerOptions(
                worker_id=new_worker_id(),
                # A few more than can run, so that a free seat is taken in the very next step.
                max_claims=max_num_seqs + max(1, max_num_seqs // 4),
                metrics_url=metrics.serve(config.metrics_host, config.metrics_port),
                weights=TokenWeights(config.input_token_weight, config.output_token_weight),
                drain_s=config.drain_s,
            ),
        )
        await worker.run(stop)
    finally:
        await store.aclose()


def build_engine(config: EngineConfig) -> BuiltEngine:
    """Load the model and put an engine around it."""
    require_device(config.device)
    use_threads(config.num_threads)
    ops = get_ops(config.device, config.cpu_level)
    dtype = resolve_dtype(config.dtype, config.device, ops)
    dtype_name = str(dtype).removeprefix("torch.")
    check_before_loading(config, dtype_name)
    log_backend(ops, dtype, config)
    model = load_configured(config, dtype, ops)
    log_model(model, dtype_name, config.device)
    cost = ModelCost.of(
        model.config, dtype_name, model.weight_bytes, has_own_head=model.has_own_head
    )
    plan = plan_for_loaded(config, model.name, model.config, cost)
    one_pool(ops, dtype)
    log_plan(plan)
    scheduler = Scheduler(
        SchedulerConfig(
            max_num_seqs=plan.max_num_seqs.value,
            max_num_batched_tokens=plan.max_num_batched_tokens.value,
            max_model_len=plan.max_model_len,
            eos_token_ids=frozenset(model.eos_token_ids),
        ),
        _make_cache(config, plan),
        _make_scope_map(config),
    )
    pages = allocate_kv_pages(model.config, plan.num_pages, config.page_size, dtype, config.device)
    runner = ModelRunner(
        model.decoder,
        pages,
        ops,
        eos_token_ids=frozenset(model.eos_token_ids),
        device=config.device,
    )
    saved = _open_saved(config, runner, model.fingerprint)
    core = EngineCore(scheduler, runner, Tokenizer.from_json(model.tokenizer_json), saved=saved)
    card = _model_card(config, model, plan.max_model_len)
    return BuiltEngine(EngineThread(core), card, plan)


def _make_cache(config: EngineConfig, plan: Plan) -> PrefixCache:
    tenant_pages = config.tenant_pinned_pages
    if tenant_pages is None:
        tenant_pages = plan.max_pinned_pages // _TENANTS_THAT_PIN_THEIR_SHARE
    return PrefixCache(
        plan.num_pages,
        config.page_size,
        enabled=config.prefix_cache,
        pin_limits=PinLimits(plan.max_pinned_pages, tenant_pages),
    )


def _make_scope_map(config: EngineConfig) -> ScopeMap:
    scope = CacheScope(config.cache_scope)
    if scope is CacheScope.ALL:
        logger.warning(
            "--cache-scope all: by the time that answers take, tenants can find out what others ask"
        )
    ttl_s = float("inf") if config.cache_ttl_s is None else config.cache_ttl_s
    return ScopeMap(scope, Retention(ttl_s=ttl_s))


def _open_saved(
    config: EngineConfig, runner: ModelRunner, fingerprint: str
) -> SavedPrefixes | None:
    if config.saved_prefixes_bytes == 0:
        return None
    layout = runner.pool_layout(fingerprint)
    folder = config.data_dir / "prefixes"
    files = PrefixFiles(folder, layout, max_bytes=config.saved_prefixes_bytes)
    return SavedPrefixes(files, runner, layout)


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
