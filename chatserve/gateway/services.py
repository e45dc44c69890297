"""The objects that the endpoints share, built once per process.

Owns the order in which they come up and go down. Endpoints get them through `app.state.services`;
nothing in this package is global.
"""

from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from chatserve.config import GatewayConfig
from chatserve.gateway.background import Background
from chatserve.gateway.body_budget import BodyBudget
from chatserve.gateway.cache_watch import CacheWatch
from chatserve.gateway.connection_counts import ConnectionCounts
from chatserve.gateway.connection_limits import ConnectionLimits
from chatserve.gateway.conversation_reading import ConversationReading
from chatserve.gateway.directory import Directory
from chatserve.gateway.drain import Drain
from chatserve.gateway.gateway_metrics import GatewayMetrics
from chatserve.gateway.generation import Generations
from chatserve.gateway.loop_lag import LoopLag
from chatserve.gateway.models import ServedModels
from chatserve.gateway.overdue import end_overdue_requests
from chatserve.gateway.preamble import Preamble
from chatserve.gateway.prompt_registry import PromptRegistry
from chatserve.gateway.quotas import KnownQuotas
from chatserve.gateway.router import Router
from chatserve.gateway.titles import Titles
from chatserve.gateway.updates import Updates
from chatserve.store.connection import Store, open_store
from chatserve.store.log_readers import LogReaders


@dataclass(frozen=True, slots=True)
class Services:
    """What an endpoint may use.

    Owns: nothing itself; `open_services` closes what it names.
    Used from: the event loop.
    """

    config: GatewayConfig
    store: Store
    models: ServedModels
    prompts: PromptRegistry
    preamble: Preamble
    generations: Generations
    metrics: GatewayMetrics
    limits: ConnectionLimits
    drain: Drain
    bodies: BodyBudget
    conversations: ConversationReading
    quotas: KnownQuotas
    connection_counts: ConnectionCounts
    updates: Updates
    directory: Directory
    cache_watch: CacheWatch
    titles: Titles | None


class _Part(Protocol):
    """What runs in the background between its start and its end."""

    def start(self) -> Awaitable[None] | None: ...

    async def aclose(self) -> None: ...


P = TypeVar("P", bound=_Part)


@asynccontextmanager
async def open_services(
    config: GatewayConfig, limits: ConnectionLimits | None = None
) -> AsyncIterator[Services]:
    """Connect to the store and start what runs in the background, until the context ends.

    Raises:
        StoreError: The store cannot be used.
    """
    async with AsyncExitStack() as stack:
        store = await open_store(config.redis_url)
        stack.push_async_callback(store.aclose)
        log_readers = await _started(stack, LogReaders(store))
        directory = await _started(stack, Directory(store, may_be_open=config.is_loopback))
        models = await _started(stack, ServedModels(store.workers))
        router = await _started(stack, Router(store.workers, models))
        prompts = await _started(stack, PromptRegistry(store.prompts))
        preamble = Preamble(prompts)
        lag = LoopLag()
        await _started(stack, Background(lag.run))
        metrics = GatewayMetrics(lag)
        quotas = KnownQuotas(store.limits, directory)
        connection_counts = ConnectionCounts(store.connections, quotas)
        await _started(stack, connection_counts)
        generations = Generations(
            store,
            log_readers,
            metrics,
            quotas,
            router,
            max_queue=config.max_queue,
            grace_s=config.disconnect_grace_s,
        )
        stack.push_async_callback(generations.aclose)
        conversations = ConversationReading(store.sessions)
        updates = Updates(store.queue, models)
        stack.push_async_callback(updates.aclose)
        titles: Titles | None = None
        if config.titles == "model":
            titles = Titles(store, log_readers, models, conversations, max_queue=config.max_queue)
            stack.push_async_callback(titles.aclose)
        await _started(stack, Background(partial(end_overdue_requests, store.queue)))
        yield Services(
            config=config,
            store=store,
            models=models,
            prompts=prompts,
            preamble=preamble,
            generations=generations,
            metrics=metrics,
            limits=limits or ConnectionLimits(),
            drain=Drain(),
            bodies=BodyBudget(),
            conversations=conversations,
            quotas=quotas,
            connection_counts=connection_counts,
            updates=updates,
            directory=directory,
            cache_watch=CacheWatch(store.cache_snapshots, models),
            titles=titles,
        )


async def _started(stack: AsyncExitStack, part: P) -> P:
    """Start a part, which ends with the stack, also when its start fails."""
    stack.push_async_callback(part.aclose)
    starting = part.start()
    if starting is not None:
        await starting
    return part
