"""What happens to an answer when nobody reads it any more.

Owns the count of readers of every answer that this gateway serves, and the timers of those that
lost their last one. Knows neither sockets nor logs; it is told who comes and goes.

    what was asked                                when its last reader is gone
    --------------------------------------------  ------------------------------------
    over HTTP, or on a socket with store: false   ABORT   cancelled at once
    on a socket, stored, in no session            GRACE   cancelled after a grace period
    in a session, or in the background            RUN     runs to its end

Here readers are counted on this gateway. When it has none left it says so in the store, which
cancels unless another gateway still has one (`store/reading.py`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chatserve.engine.api import RequestId
from chatserve.errors import StoreError
from chatserve.store.responses import Abandonment

logger = logging.getLogger(__name__)

# When to try a failed cancel again. It is idempotent, and an answer that nobody reads holds pages.
_RETRY_DELAYS_S = (0.2, 1.0, 5.0)

_CLOSE_TIMEOUT_S = 2.0


@dataclass(slots=True)
class _Watch:
    """The readers of one answer. Mutable: `num_readers` and `timer` follow who comes and goes."""

    abandonment: Abandonment
    num_readers: int = 0
    timer: asyncio.TimerHandle | None = None


class Readers:
    """Counts readers and gives up what nobody reads.

    Owns: one watch per answer with readers or in its grace period, and the news on their way.
    Used from: the event loop. `enter`, `leave` and `finish` never await, so they are safe in the
    cleanup of a cancelled task.
    """

    def __init__(
        self, give_up: Callable[[RequestId], Awaitable[object]], *, grace_s: float
    ) -> None:
        """Count from none; `give_up` ends an answer that no other gateway reads, and may repeat."""
        self._give_up = give_up
        self._grace_s = grace_s
        self._has_grace = True
        self._watches: dict[RequestId, _Watch] = {}
        self._giving_up: set[asyncio.Task[None]] = set()

    def enter(self, request_id: RequestId, abandonment: Abandonment) -> None:
        """Count one more reader, which also ends a grace period."""
        watch = self._watches.setdefault(request_id, _Watch(abandonment))
        watch.num_readers += 1
        if watch.timer is not None:
            watch.timer.cancel()
            watch.timer = None

    def finish(self, request_id: RequestId) -> None:
        """Note that the answer has ended, or never began: nothing is to be cancelled."""
        if request_id in self._watches:
            self._watches[request_id].abandonment = Abandonment.RUN

    def leave(self, request_id: RequestId) -> None:
        """Count one reader less, and apply the table if it was the last."""
        watch = self._watches[request_id]
        watch.num_readers -= 1
        if watch.num_readers:
            return
        if watch.abandonment is Abandonment.GRACE and self._has_grace:
            loop = asyncio.get_running_loop()
            watch.timer = loop.call_later(self._grace_s, self._abandon, request_id)
            return
        del self._watches[request_id]
        if watch.abandonment is Abandonment.ABORT:
            self._start_to_give_up(request_id)

    def drop_grace(self) -> None:
        """Give nothing up after a grace period any more, those that run already included.

        For a gateway that stops: its readers come back through another.
        """
        self._has_grace = False
        for watch in self._watches.values():
            if watch.timer is not None:
                watch.timer.cancel()

    async def aclose(self) -> None:
        """Give up what could only be read here, and let the news of it arrive in bounded time."""
        self.drop_grace()
        for request_id, watch in self._watches.items():
            if watch.abandonment is Abandonment.ABORT:
                self._start_to_give_up(request_id)
        if self._giving_up:
            await asyncio.wait(self._giving_up, timeout=_CLOSE_TIMEOUT_S)

    def _abandon(self, request_id: RequestId) -> None:
        del self._watches[request_id]
        self._start_to_give_up(request_id)

    def _start_to_give_up(self, request_id: RequestId) -> None:
        task = asyncio.create_task(self._give_up_stubbornly(request_id))
        self._giving_up.add(task)
        task.add_done_callback(self._giving_up.discard)

    async def _give_up_stubbornly(self, request_id: RequestId) -> None:
        for delay_s in _RETRY_DELAYS_S:
            try:
                await self._give_up(request_id)
            except StoreError as error:
                logger.log(error.log_level, "%s cannot be cancelled yet: %s", request_id, error)
                await asyncio.sleep(delay_s)
            else:
                return
        logger.error("%s has no readers and could not be cancelled", request_id)
