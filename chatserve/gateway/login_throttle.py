"""How often a login may fail.

Owns the counts of failures by address, in this process and bounded in number. A secret cannot be
guessed, so this is no lock: it keeps whoever tries from using up the store, and makes it show.
Counting is per gateway for the same reason, and never by key: whoever knows its id could keep its
owner out.

An attempt counts from its beginning and is forgiven when it succeeds, so that many at once get no
more tries than one after the other.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from chatserve.errors import RateLimited

MAX_FAILURES = 5
"""As many logins may fail in a window for one address."""

WINDOW_S = 30.0
_MAX_COUNTED = 10_000


class LoginThrottle:
    """The failures of the last seconds.

    Owns: a window for each address that failed; the oldest goes when there are too many.
    Used from: the event loop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def begin(self, address: str) -> None:
        """Count an attempt from an address, or raise RateLimited when it had too many."""
        now = self._clock()
        wait_s = self._wait_s(address, now)
        if wait_s:
            raise RateLimited(
                "too many logins have failed: try again later", retry_after_s=math.ceil(wait_s)
            )
        self._add(address, 1, now)

    def forgive(self, address: str) -> None:
        """Take back an attempt that has succeeded."""
        self._add(address, -1, self._clock())

    def _wait_s(self, address: str, now: float) -> float:
        """Return how long an address has to wait; 0 when it has tries left."""
        since, count = self._windows.get(address, (now, 0))
        ends_in = since + WINDOW_S - now
        return ends_in if count >= MAX_FAILURES and ends_in > 0 else 0.0

    def _add(self, address: str, number: int, now: float) -> None:
        since, count = self._windows.get(address, (now, 0))
        if since + WINDOW_S <= now:
            since, count = now, 0
        self._windows[address] = since, max(0, count + number)
        self._windows.move_to_end(address)
        if len(self._windows) > _MAX_COUNTED:
            self._windows.popitem(last=False)
