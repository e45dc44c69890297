"""What one gateway counts.

Owns its registry and the meaning of its latencies: those of the reader, from the arrival of the
request to the first text handed on, and between pieces of text. The page that shows them is
`metrics.py`.
"""

from prometheus_client import CollectorRegistry, Gauge, Histogram

from chatserve.metrics import ITL, ITL_BUCKETS, TTFT, TTFT_BUCKETS


class GatewayMetrics:
    """The counters of one gateway.

    Owns: its registry.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.connections = Gauge(
            "chatserve_connections", "WebSockets open right now.", registry=self.registry
        )
        self.readers = Gauge(
            "chatserve_readers", "Readers of answers, right now.", registry=self.registry
        )
        self._ttft = Histogram(*TTFT, buckets=TTFT_BUCKETS, registry=self.registry)
        self._itl = Histogram(*ITL, buckets=ITL_BUCKETS, registry=self.registry)

    def observe_text(self, now: float, last_text_at: float | None, started_at: float) -> None:
        """Count one piece of text: the first of its answer, or one after another."""
        if last_text_at is None:
            self._ttft.observe(now - started_at)
        else:
            self._itl.observe(now - last_text_at)
