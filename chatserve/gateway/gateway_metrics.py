"""What one gateway counts.

Owns its registry and the meaning of its latencies: those of the reader, from the arrival of the
request to the first text handed on, and between pieces of text. The page that shows them is
`metrics.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from chatserve.gateway.loop_lag import LoopLag
from chatserve.gateway.outbox import Outbox
from chatserve.metrics import ITL, ITL_BUCKETS, TTFT, TTFT_BUCKETS
from chatserve.protocol.codes import CloseCode

# Ours, and those that a peer or the server below ends a socket with.
_KNOWN_CODES = frozenset({*CloseCode, 1000, 1005, 1006, 1007, 1009})


class GatewayMetrics:
    """The counters of one gateway.

    Owns: its registry.
    Used from: the event loop.
    """

    def __init__(self, lag: LoopLag) -> None:
        self.registry = CollectorRegistry()
        self._outboxes: set[Outbox] = set()
        self._gauge(
            "chatserve_connections", "WebSockets open right now.", lambda: self.num_connections
        )
        self._gauge("chatserve_outbox_bytes", "Bytes that wait for slow peers.", self._outbox_bytes)
        self._gauge(
            "chatserve_event_loop_lag_seconds",
            "How late the event loop was, at worst, in the last ten seconds.",
            lambda: lag.worst_s,
        )
        self._closes = Counter(
            "chatserve_connections_closed",
            "WebSockets that ended, by close code.",
            labelnames=["code"],
            registry=self.registry,
        )
        self.readers = Gauge(
            "chatserve_readers", "Readers of answers, right now.", registry=self.registry
        )
        self._ttft = Histogram(*TTFT, buckets=TTFT_BUCKETS, registry=self.registry)
        self._itl = Histogram(*ITL, buckets=ITL_BUCKETS, registry=self.registry)

    @property
    def num_connections(self) -> int:
        """The WebSockets that are open."""
        return len(self._outboxes)

    @contextmanager
    def serving(self, outbox: Outbox) -> Iterator[None]:
        """Count an open socket and what waits for its peer."""
        self._outboxes.add(outbox)
        try:
            yield
        finally:
            self._outboxes.discard(outbox)

    def count_close(self, code: int) -> None:
        """Count a socket's end; codes that a peer made up are counted together."""
        self._closes.labels(str(code) if code in _KNOWN_CODES else "other").inc()

    def observe_text(self, now: float, last_text_at: float | None, started_at: float) -> None:
        """Count one piece of text: the first of its answer, or one after another."""
        if last_text_at is None:
            self._ttft.observe(now - started_at)
        else:
            self._itl.observe(now - last_text_at)

    def _gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(name, text, registry=self.registry).set_function(value)

    def _outbox_bytes(self) -> float:
        return sum(outbox.num_bytes for outbox in self._outboxes)
