"""How often a login may fail.

Owns the counts of failures by address and by key, in this process and bounded in number. A secret
cannot be guessed, so this is no lock: it keeps whoever tries from using up the store, and makes it
show. Counting is per gateway for the same reason.

An attempt counts from its beginning and is forgiven when it succeeds, so that many at once get no
more tries than one after the other.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from chatserve.errors import RateLimited

MAX_FAILURES = 5
"""As many logins may fail in a window for one address, and for one key."""

WINDOW_S = 30.0
_MAX_COUNTED = 10_000


class LoginThrottle:
    """The failures of the last seconds.

    Owns: a window for each address and key that failed; the oldest goes when there are too many.
    Used from: the event loop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def begin(self, subjects: Sequence[str]) -> None:
        """Count an attempt of some subjects, or raise RateLimited when one had too many."""
        now = self._clock()
        waits = [self._wait_s(subject, now) for subject in subjects]
        if any(waits):
            raise RateLimited(
                "too many logins have failed: try again later", retry_after_s=math.ceil(max(waits))
            )
        for subject in subjects:
            self._add(subject, 1, now)

    def forgive(self, subjects: Sequence[str]) -> None:
        """Take back an attempt that has succeeded."""
        now = self._clock()
        for subject in subjects:
            self._add(subject, -1, now)

    def _wait_s(self, subject: str, now: float) -> float:
        """Return how long a subject has to wait; 0 when it has tries left."""
        since, count = self._windows.get(subject, (now, 0))
        ends_in = since + WINDOW_S - now
        return ends_in if count >= MAX_FAILURES and ends_in > 0 else 0.0

    def _add(self, subject: str, number: int, now: float) -> None:
        since, count = self._windows.get(subject, (now, 0))
        if since + WINDOW_S <= now:
            since, count = now, 0
        self._windows[subject] = since, max(0, count + number)
        self._windows.move_to_end(subject)
        if len(self._windows) > _MAX_COUNTED:
            self._windows.popitem(last=False)
