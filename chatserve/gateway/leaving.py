"""When a connection is asked to leave, and what it is told.

Owns the two reasons, its age and a gateway that drains, each with its close code and with what a
create is answered from then on. Knows no socket: a connection is given a notice, and acts on it.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from chatserve.error_codes import ErrorCode
from chatserve.errors import ClientError, InvalidRequest
from chatserve.gateway.drain import Drain, draining
from chatserve.gateway.ending import Ending
from chatserve.protocol.codes import CloseCode

# How much of its lifetime a connection has for taking leave, and how much at most.
LEAD_SHARE = 0.1
_MAX_LEAD_S = 120.0


@dataclass(frozen=True, slots=True)
class Notice:
    """A connection ends when nothing is in flight on it, and in `seconds` at the latest."""

    reason: str
    seconds: float
    ending: Ending
    refusal: ClientError

    def event(self) -> dict[str, Any]:
        """Return what the peer is told."""
        return {
            "type": "chatserve:goaway",
            "reason": self.reason,
            "deadline_ms": round(1000 * self.seconds),
        }


@contextmanager
def noticing(drain: Drain, lifetime_s: float, notify: Callable[[Notice], None]) -> Iterator[None]:
    """Call `notify` when a connection that begins now is to end; twice if both reasons come."""
    lead_s = min(_MAX_LEAD_S, LEAD_SHARE * lifetime_s)
    loop = asyncio.get_running_loop()
    timer = loop.call_later(lifetime_s - lead_s, lambda: notify(_too_old(lead_s)))
    try:
        with drain.telling(lambda: notify(_gateway_stops(drain.remaining_s))):
            yield
    finally:
        timer.cancel()


def _too_old(seconds: float) -> Notice:
    return Notice(
        "lifetime",
        seconds,
        Ending(CloseCode.GOING_AWAY, "the lifetime of this connection is over"),
        InvalidRequest(
            "the lifetime of this connection is over: connect again",
            code=ErrorCode.SOCKET_LIFETIME_OVER,
        ),
    )


def _gateway_stops(seconds: float) -> Notice:
    return Notice(
        "drain",
        seconds,
        Ending(CloseCode.SERVICE_RESTART, "this gateway stops"),
        draining(),
    )
