"""The thread in which the engine runs, and the only way into it.

Owns the thread and its inbox. Everything that changes the engine happens in this thread between two
steps, so nothing in the engine needs a lock; the event loop puts commands into the inbox and gets
results by callback.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from chatserve.engine.api import EngineStats, GenerationRequest, RequestId, RequestOutput
from chatserve.engine.engine_core import EngineCore

log = logging.getLogger(__name__)

OnOutputs = Callable[[Sequence[RequestOutput]], None]
OnDeath = Callable[[BaseException], None]
Command = Callable[[], RequestOutput | None]


class EngineThread:
    """A running engine, as the worker drives it. Every method but `stop` returns at once.

    Owns: the thread, the inbox, the last snapshot. Used from: the event loop.
    """

    def __init__(self, core: EngineCore):
        self._core = core
        self._inbox: SimpleQueue[Command | None] = SimpleQueue()
        self._stats = core.stats()
        self._thread: threading.Thread | None = None

    def start(self, on_outputs: OnOutputs, on_death: OnDeath) -> None:
        """Start the step loop.

        Args:
            on_outputs: Called from the engine thread, up to twice in a step: with the requests it
                admits before they are computed, and with the tokens it produced.
            on_death: Called from the engine thread, at most once, if the loop ends by an error.
        """
        assert self._thread is None, "an engine starts once"
        self._thread = threading.Thread(
            target=self._run, args=(on_outputs, on_death), name="engine", daemon=True
        )
        self._thread.start()

    def add(self, request: GenerationRequest, resumed_token_ids: Sequence[int] = ()) -> None:
        """Queue a request; its reader already has `resumed_token_ids` from an earlier worker."""
        self._inbox.put(lambda: self._core.add(request, resumed_token_ids))

    def abort(self, request_ids: Sequence[RequestId]) -> None:
        """End requests at the next step boundary without an output; unknown ids are ignored."""
        self._inbox.put(lambda: self._core.abort(request_ids))

    def stats(self) -> EngineStats:
        """Return the snapshot taken after the last step or command."""
        return self._stats

    def stop(self) -> None:
        """End the loop after the running step and wait for the thread. Idempotent."""
        if self._thread is not None and self._thread.is_alive():
            self._inbox.put(None)
            self._thread.join()

    def _run(self, on_outputs: OnOutputs, on_death: OnDeath) -> None:
        try:
            while self._obey(on_outputs):
                if self._core.has_work:
                    self._tell(on_outputs, self._core.begin_step())
                    outputs = self._core.finish_step()
                    self._stats = self._core.stats()
                    self._tell(on_outputs, outputs)
        except Exception as error:
            log.critical("the engine thread died", exc_info=True)
            on_death(error)

    def _tell(self, on_outputs: OnOutputs, outputs: Sequence[RequestOutput]) -> None:
        if outputs:
            on_outputs(outputs)

    def _obey(self, on_outputs: OnOutputs) -> bool:
        """Execute what is in the inbox, waiting for it if the engine is idle; False means stop."""
        while not self._core.has_work or not self._inbox.empty():
            command = self._inbox.get()
            if command is None:
                return False
            output = command()
            self._stats = self._core.stats()
            self._tell(on_outputs, [output] if output is not None else [])
        return True
