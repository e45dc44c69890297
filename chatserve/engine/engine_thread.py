"""The thread in which the engine runs, and the only way into it.

Owns the thread and its inbox. Everything that changes the engine happens in this thread between two
steps, so nothing in the engine needs a lock; the event loop puts commands into the inbox and gets
results by callback.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from chatserve.cache_snapshot import CacheSnapshot
from chatserve.engine.api import (
    EngineStats,
    GenerationRequest,
    KeptPrefix,
    PrefixReport,
    RequestId,
    RequestOutput,
)
from chatserve.engine.engine_core import EngineCore
from chatserve.prefix_digest import HeldPrefixes

log = logging.getLogger(__name__)

T = TypeVar("T")

OnOutputs = Callable[[Sequence[RequestOutput]], None]
OnDeath = Callable[[BaseException], None]
OnReports = Callable[[Sequence[PrefixReport]], None]
Command = Callable[[], Sequence[RequestOutput] | None]


class EngineThread:
    """A running engine, as the worker drives it. Every method but `stop` returns at once.

    Owns: the thread, the inbox, the last snapshot. Used from: the event loop.
    """

    def __init__(self, core: EngineCore):
        self._core = core
        self._inbox: SimpleQueue[Command | None] = SimpleQueue()
        self._stats = core.stats()
        self._thread: threading.Thread | None = None

    def start(self, on_outputs: OnOutputs, on_death: OnDeath, on_reports: OnReports) -> None:
        """Start the step loop. All three are called from the engine thread.

        Args:
            on_outputs: Called up to twice in a step: with the requests it admits before they are
                computed, and with the tokens it produced.
            on_death: Called at most once, if the loop ends by an error.
            on_reports: Called with news of kept prefixes.
        """
        assert self._thread is None, "an engine starts once"
        self._on_outputs, self._on_reports = on_outputs, on_reports
        self._thread = threading.Thread(
            target=self._run, args=(on_death,), name="engine", daemon=True
        )
        self._thread.start()

    def add(self, request: GenerationRequest, resumed_token_ids: Sequence[int] = ()) -> None:
        """Queue a request; its reader already has `resumed_token_ids` from an earlier worker."""
        self._inbox.put(lambda: _as_list(self._core.add(request, resumed_token_ids)))

    def abort(self, request_ids: Sequence[RequestId]) -> None:
        """End requests at the next step boundary without an output; unknown ids are ignored."""
        self._inbox.put(lambda: self._core.abort(request_ids))

    def keep_exactly(self, prefixes: Sequence[KeptPrefix]) -> None:
        """Have these prefixes ready from now on, and no other."""
        self._inbox.put(lambda: self._core.keep_exactly(prefixes))

    def revoke(self, tenant: str) -> None:
        """End a tenant's requests with an error and forget whatever is cached or saved of it."""
        self._inbox.put(lambda: self._core.revoke(tenant))

    def held_prefixes(self) -> Future[tuple[HeldPrefixes, float]]:
        """Return the names of what the prefix cache will hold at the next step boundary.

        And how many seconds it took the engine to gather them.
        """
        return self._ask(self._core.held_prefixes)

    def cache_snapshot(self) -> Future[tuple[CacheSnapshot, float]]:
        """Return what cache and batch look like at the next step boundary, and what that took."""
        return self._ask(self._core.cache_snapshot)

    def stats(self) -> EngineStats:
        """Return the snapshot taken after the last step or command."""
        return self._stats

    def stop(self) -> None:
        """End the loop after the running step and wait for the thread. Idempotent."""
        if self._thread is not None and self._thread.is_alive():
            self._inbox.put(None)
            self._thread.join()

    def _ask(self, question: Callable[[], T]) -> Future[tuple[T, float]]:
        """Ask the core between two steps; a future that is cancelled before costs nothing."""
        asked: Future[tuple[T, float]] = Future()

        def answer() -> None:
            if asked.set_running_or_notify_cancel():
                began_s = time.perf_counter()
                asked.set_result((question(), time.perf_counter() - began_s))

        self._inbox.put(answer)
        return asked

    def _run(self, on_death: OnDeath) -> None:
        try:
            while self._obey():
                if self._core.has_work:
                    self._tell(self._core.begin_step())
                    outputs = self._core.finish_step()
                    self._stats = self._core.stats()
                    self._tell(outputs)
        except Exception as error:
            log.critical("the engine thread died", exc_info=True)
            on_death(error)

    def _tell(self, outputs: Sequence[RequestOutput]) -> None:
        if outputs:
            self._on_outputs(outputs)
        reports = self._core.take_reports()
        if reports:
            self._on_reports(reports)

    def _obey(self) -> bool:
        """Execute what is in the inbox, waiting for it if the engine is idle; False means stop."""
        while not self._core.has_work or not self._inbox.empty():
            command = self._inbox.get()
            if command is None:
                return False
            outputs = command()
            self._stats = self._core.stats()
            self._tell(outputs or [])
        return True


def _as_list(output: RequestOutput | None) -> list[RequestOutput]:
    return [output] if output is not None else []
