"""What a worker exports on its own `/metrics`.

Owns the worker's registry. Page and request counts are read from one snapshot of the engine per
scrape, so that they always add up; only the latencies are counted as they happen.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from chatserve import metrics
from chatserve.engine.api import EngineStats


class WorkerMetrics:
    """The worker's registry and its histograms.

    Owns: the registry and, once served, the metrics server's thread. Used from: the event loop.
    """

    def __init__(self, stats: Callable[[], EngineStats]):
        self.registry = CollectorRegistry()
        self.registry.register(_EngineCollector(stats))
        name, text = metrics.TTFT
        self.ttft = Histogram(name, text, buckets=metrics.TTFT_BUCKETS, registry=self.registry)
        name, text = metrics.ITL
        self.itl = Histogram(name, text, buckets=metrics.ITL_BUCKETS, registry=self.registry)

    def serve(self, host: str, port: int) -> str:
        """Serve `/metrics` from a thread; port 0 takes any free one. Returns the address."""
        server, _thread = start_http_server(port, addr=host, registry=self.registry)
        return f"http://{host}:{server.server_port}/metrics"


class _EngineCollector(Collector):
    def __init__(self, stats: Callable[[], EngineStats]):
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        pages = GaugeMetricFamily(
            "chatserve_kv_pages",
            "Pages of the KV pool: used by a request, cached by the tree only, or free.",
            labels=["state"],
        )
        pages.add_metric(["free"], stats.pages_free)
        pages.add_metric(["used"], stats.pages_used)
        pages.add_metric(["cached"], stats.pages_cached)
        yield pages
        requests = GaugeMetricFamily(
            "chatserve_requests", "Requests in the engine.", labels=["state"]
        )
        requests.add_metric(["running"], stats.requests_running)
        requests.add_metric(["waiting"], stats.requests_waiting)
        yield requests
        yield GaugeMetricFamily(
            "chatserve_kv_pages_shared", "Pages held by two or more requests.", stats.pages_shared
        )
        yield GaugeMetricFamily(
            "chatserve_kv_pages_pinned", "Pages of pinned prompts.", stats.pages_pinned
        )
        counters = {
            "chatserve_prefix_cache_query_tokens": ("Tokens looked up.", stats.query_tokens),
            "chatserve_prefix_cache_hit_tokens": ("Tokens found.", stats.hit_tokens),
            "chatserve_preemptions": ("Requests sent back to waiting.", stats.preemptions),
            "chatserve_engine_steps": ("Steps of the engine.", stats.num_steps),
        }
        for name, (text, value) in counters.items():
            yield CounterMetricFamily(name, text, value)
