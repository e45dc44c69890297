"""`GET /metrics`: the gateway's own numbers and, where it is wanted, those of its workers.

Owns the page. Every process exports its own metrics; `serve` sets `merge_worker_metrics`, and then
the pages of the live workers are fetched, labelled with the worker and added to this one.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from chatserve.gateway.identity import require_operator
from chatserve.gateway.operations import Operation
from chatserve.gateway.services import Services
from chatserve.store.workers import WorkerBeat

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Straight to the worker: a proxy named in the environment is for the world outside.
_DIRECT = build_opener(ProxyHandler({}))

_SCRAPE_TIMEOUT_S = 1.0
_MAX_PAGE_BYTES = 4 * 2**20


async def get_metrics(request: Request) -> Response:
    """Serve `GET /metrics` to operators: it is about all tenants."""
    require_operator(request)
    services: Services = request.app.state.services
    families = [*services.metrics.registry.collect(), await _queued(services)]
    if services.config.merge_worker_metrics:
        families += await _worker_families(services.models.beats)
    page = CollectorRegistry()
    page.register(_Families(_merged(families)))
    return Response(generate_latest(page), headers={"content-type": CONTENT_TYPE})


async def _queued(services: Services) -> Metric:
    """Return how many requests wait in the store for an engine that has room."""
    family = GaugeMetricFamily(
        "chatserve_queued_requests", "Requests in the store's queue.", labels=["model"]
    )
    for model in services.models.live:
        name = model.card.name
        family.add_metric([name], await services.store.queue.depth(name))
    return family


class _Families(Collector):
    """Metrics that are there already, in the form in which a registry wants them."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


async def _worker_families(beats: Sequence[WorkerBeat]) -> list[Metric]:
    urls = {beat.worker_id: beat.metrics_url for beat in beats if beat.metrics_url}
    pages = await asyncio.gather(*(asyncio.to_thread(_fetch, url) for url in urls.values()))
    return [
        family
        for worker_id, page in zip(urls, pages, strict=True)
        for family in _labelled(page, worker_id)
    ]


def _fetch(url: str) -> str:
    """Return a worker's page; nothing for a worker that does not answer in time."""
    try:
        with _DIRECT.open(url, timeout=_SCRAPE_TIMEOUT_S) as reply:
            page: bytes = reply.read(_MAX_PAGE_BYTES)
    except (URLError, OSError, ValueError) as error:
        logger.warning("the metrics of a worker cannot be read: %s", error)
        return ""
    return page.decode()


def _labelled(page: str, worker_id: str) -> Iterator[Metric]:
    for family in text_string_to_metric_families(page):
        labelled = Metric(family.name, family.documentation, family.type)
        for sample in family.samples:
            labels = {**sample.labels, "worker": worker_id}
            labelled.add_sample(sample.name, labels, sample.value)
        yield labelled


def _merged(families: Iterable[Metric]) -> list[Metric]:
    """Return one family per name, as the format demands, with the samples of all."""
    merged: dict[str, Metric] = {}
    for family in families:
        if family.name in merged:
            merged[family.name].samples.extend(family.samples)
        else:
            merged[family.name] = family
    return list(merged.values())


OPERATIONS = (
    Operation(
        "GET",
        "/metrics",
        "Figures in Prometheus' format",
        reply={"type": "string"},
        media_type="text/plain",
    ),
)
