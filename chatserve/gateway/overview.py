"""`GET /v1/chatserve/overview`: what an operator's page shows of the service.

Owns what is looked at, how much at a time and how often. A look at one page of tenants takes a
fixed number of round trips, and those who ask within half a second share it, so that pages that
poll cost no more the more of them are open.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve import __version__
from chatserve.engine.api import DEFAULT_TENANT
from chatserve.gateway.identity import require_operator
from chatserve.gateway.operations import LIMIT, Operation, text
from chatserve.gateway.paging import page_limit
from chatserve.gateway.replies import json_response
from chatserve.gateway.services import Services
from chatserve.protocol.overview import (
    DayUsage,
    GatewayOverview,
    LimitUse,
    Overview,
    QueueOverview,
    TenantOverview,
    WorkerOverview,
)
from chatserve.store.limits import Allowance, Allowances, ScopeLimits
from chatserve.store.queue_load import TenantLoad
from chatserve.store.tenants import Tenant
from chatserve.store.workers import WorkerBeat

_PATH = "/v1/chatserve/overview"

FRESH_S = 0.5
"""How long a look counts as what is there now."""

_MAX_LOOKS = 16


@dataclass(frozen=True, slots=True)
class _Look:
    began_s: float
    finding: asyncio.Task[Overview]


class OverviewEndpoint:
    """`GET /v1/chatserve/overview`.

    Owns: the last looks, by the page of tenants that they are at.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self._looks: dict[tuple[int, str], _Look] = {}

    async def serve(self, request: Request) -> Response:
        """Reply to an operator with a page of tenants by name, those after `after`."""
        require_operator(request)
        page = page_limit(request), request.query_params.get("after", "")
        finding = self._look(request.app.state.services, page)
        # Shielded: one who leaves does not take the look away from the others.
        found = await asyncio.shield(finding)
        return json_response(found.model_dump())

    def _look(self, services: Services, page: tuple[int, str]) -> asyncio.Task[Overview]:
        now_s = time.monotonic()
        look = self._looks.get(page)
        if look is None or now_s - look.began_s >= FRESH_S:
            look = _Look(now_s, asyncio.create_task(_overview(services, *page)))
            self._looks.pop(page, None)
            self._looks[page] = look
            while len(self._looks) > _MAX_LOOKS:
                del self._looks[next(iter(self._looks))]
        return look.finding


async def _overview(services: Services, limit: int, after: str) -> Overview:
    tenants = list(await services.store.tenants.list(limit + 1, after))
    if not tenants and not after:
        tenants = [Tenant(DEFAULT_TENANT)]  # whose requests are those of a service without keys
    beats = list(services.models.beats)
    models = sorted({beat.model for beat in beats})
    depths = asyncio.gather(*(services.store.queue.depth(model) for model in models))
    shown, workers, lengths = await asyncio.gather(
        _tenants(services, tenants[:limit], models), _workers(services, beats), depths
    )
    max_length = services.config.max_queue
    return Overview(
        gateway=GatewayOverview(
            version=__version__,
            connections=services.metrics.num_connections,
            is_draining=services.drain.is_draining,
        ),
        workers=workers,
        queues=[
            QueueOverview(model=model, length=length, max_length=max_length)
            for model, length in zip(models, lengths, strict=True)
        ],
        tenants=shown,
        has_more=len(tenants) > limit,
    )


async def _tenants(
    services: Services, tenants: Sequence[Tenant], models: Sequence[str]
) -> list[TenantOverview]:
    store, names = services.store, [tenant.name for tenant in tenants]
    scopes = [(each.name, [ScopeLimits.of_tenant(each.name, each.quotas)]) for each in tenants]
    loads, used, left, connections = await asyncio.gather(
        store.load.of_tenants(names, models),
        store.usage.totals(names, datetime.now(UTC).date()),
        store.limits.read_many(scopes),
        store.connections.count(names),
    )
    return [
        TenantOverview(
            name=tenant.name,
            requests_running=load.running,
            requests_queued=load.queued,
            connections=None if tenant.quotas.connections is None else num_open,
            usage_today=DayUsage(**asdict(today)),
            limits=_limits(tenant, load, allowances, num_open),
        )
        for tenant, load, today, allowances, num_open in zip(
            tenants, loads, used, left, connections, strict=True
        )
    ]


def _limits(
    tenant: Tenant, load: TenantLoad, left: Allowances, num_open: int
) -> dict[str, LimitUse]:
    """Return the quotas that a tenant has, by name, and what of each is used."""
    used = {
        "requests_per_minute": _used(left.requests),
        "tokens_per_minute": _used(left.tokens),
        "parallel_responses": load.running + load.queued,
        "connections": num_open,
    }
    return {
        name: LimitUse(limit=limit, used=used.get(name))
        for name, limit in tenant.quotas.to_dict().items()
    }


def _used(allowance: Allowance | None) -> int | None:
    return None if allowance is None else allowance.limit - allowance.remaining


async def _workers(services: Services, beats: Sequence[WorkerBeat]) -> list[WorkerOverview]:
    ages_ms = await services.store.workers.ages_ms(beats)
    return [
        WorkerOverview(
            id=beat.worker_id,
            model=beat.model,
            version=beat.version,
            is_draining=beat.is_draining,
            beat_age_ms=age_ms,
            requests_running=beat.stats.requests_running,
            requests_waiting=beat.stats.requests_waiting,
            num_pages=beat.stats.num_pages,
            pages_free=beat.stats.pages_free,
            pages_used=beat.stats.pages_used,
            pages_cached=beat.stats.pages_cached,
            pages_shared=beat.stats.pages_shared,
            pages_pinned=beat.stats.pages_pinned,
            query_tokens=beat.stats.query_tokens,
            hit_tokens=beat.stats.hit_tokens,
        )
        for beat, age_ms in zip(beats, ages_ms, strict=True)
    ]


OPERATIONS = (
    Operation(
        "GET",
        _PATH,
        "Tell an operator what tenants and workers do now",
        query=(LIMIT, text("after")),
        reply=Overview,
    ),
)


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [Route(_PATH, OverviewEndpoint().serve, methods=["GET"])]
