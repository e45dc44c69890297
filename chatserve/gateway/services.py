"""The objects that the endpoints share, built once per process.

Owns the order in which they come up and go down. Endpoints get them through `app.state.services`;
nothing in this package is global.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from chatserve.config import GatewayConfig
from chatserve.gateway.connection_limits import ConnectionLimits
from chatserve.gateway.gateway_metrics import GatewayMetrics
from chatserve.gateway.generation import Generations
from chatserve.gateway.models import ServedModels
from chatserve.gateway.overdue import end_overdue_requests
from chatserve.gateway.preamble import Preamble
from chatserve.store.connection import Store, open_store
from chatserve.store.log_reader import LogReader


@dataclass(frozen=True, slots=True)
class Services:
    """What an endpoint may use.

    Owns: nothing itself; `open_services` closes what it names.
    Used from: the event loop.
    """

    config: GatewayConfig
    store: Store
    models: ServedModels
    preamble: Preamble
    generations: Generations
    metrics: GatewayMetrics
    limits: ConnectionLimits


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
        log_reader = LogReader(store)
        log_reader.start()
        stack.push_async_callback(log_reader.aclose)
        models = ServedModels(store.workers)
        stack.push_async_callback(models.aclose)
        await models.start()
        preamble = Preamble(store.prompts)
        stack.push_async_callback(preamble.aclose)
        await preamble.start()
        metrics = GatewayMetrics()
        generations = Generations(
            store,
            log_reader,
            metrics,
            max_queue=config.max_queue,
            grace_s=config.disconnect_grace_s,
        )
        stack.push_async_callback(generations.aclose)
        overdue = asyncio.create_task(end_overdue_requests(store.queue))
        stack.callback(overdue.cancel)
        yield Services(
            config, store, models, preamble, generations, metrics, limits or ConnectionLimits()
        )
