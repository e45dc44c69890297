"""How late the event loop is.

Owns the one figure that tells whether something blocks all sockets at once: by how much a timer
fires after its time, at worst, over the last few seconds. Whatever exports it reads `worst_s`.
"""

import asyncio
from collections import deque

PERIOD_S = 0.1
_NUM_SAMPLES = 100


class LoopLag:
    """The worst delay of the last hundred timers.

    Owns: the delays.
    Used from: the event loop that `run` runs on.
    """

    def __init__(self) -> None:
        self._delays_s: deque[float] = deque([0.0], maxlen=_NUM_SAMPLES)

    @property
    def worst_s(self) -> float:
        return max(self._delays_s)

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD_S
            await asyncio.sleep(PERIOD_S)
            self._delays_s.append(max(0.0, loop.time() - due))
