"""Whether the store answers this process, told once and not by everybody who asks it.

Owns the words of a loss and of a return. Dozens of commands and loops notice the same outage within
a second; they raise and retry, and leave the telling to the clients, which all share one of these.
"""

import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

REMIND_S = 30.0

QUIET_S = 1.0
"""How long nothing may fail before it is over: of a cluster, a part may be away."""


class Outage:
    """When the store was lost, if it is.

    Before its first answer nothing is told: then whoever opens the store says that it is not there.

    Owns: the times of the loss, of the last failure, and of the last line about it.
    Used from: the event loop, by the clients of one store.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._has_answered = False
        self._lost_at: float | None = None
        self._failed_at = self._told_at = 0.0

    def note_failure(self, reason: BaseException) -> None:
        """Take in that nobody answered: warn of a new outage, and now and then of a long one."""
        if not self._has_answered:
            return
        now = self._failed_at = self._clock()
        if self._lost_at is None:
            self._lost_at = self._told_at = now
            logger.warning(
                "the store does not answer: %s; trying again until it does",
                reason or type(reason).__name__,
            )
        elif now - self._told_at >= REMIND_S:
            self._told_at = now
            logger.warning("the store has not answered for %.0f s", now - self._lost_at)

    def note_answer(self) -> None:
        """Take in an answer, of whatever kind."""
        self._has_answered = True
        if self._lost_at is None:
            return
        now = self._clock()
        if now - self._failed_at >= QUIET_S:
            lost_s, self._lost_at = now - self._lost_at, None
            logger.warning("the store answers again, after %.1f s", lost_s)
