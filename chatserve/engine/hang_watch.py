"""Whether an engine hangs: it has work, and makes no steps.

Owns the judgement. What follows from it, silence and no more claims, is the worker's business.
"""

import asyncio

from chatserve.engine.engine_thread import EngineThread


class HangWatch:
    """Notices an engine that has work and makes no steps.

    Owns: the last step seen and when. Used from: the event loop.
    """

    def __init__(self, engine: EngineThread, hang_s: float):
        self._engine = engine
        self._hang_s = hang_s
        self._num_steps = -1
        self._since_s = 0.0

    def is_hanging(self) -> bool:
        now_s, stats = asyncio.get_running_loop().time(), self._engine.stats()
        is_busy = stats.requests_running + stats.requests_waiting > 0
        if not is_busy or stats.num_steps != self._num_steps:
            self._num_steps, self._since_s = stats.num_steps, now_s
        return now_s - self._since_s > self._hang_s
