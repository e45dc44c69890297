"""Who may do the next piece of work of a kind, of which only so many are done at once.

Owns the places and the lines for them: one line for each party, which is a tenant or a user, and
between the lines turn and turn about. No party has all places, so that whoever else comes finds one
free or about to be. Knows nothing of the work.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from chatserve.error_codes import ErrorCode
from chatserve.errors import TooManyInFlight

MAX_WAITING = 256
"""How much may wait for one party: what waits takes memory."""


class FairTurns:
    """Places, and the parties that wait for them.

    Owns: how many places each party has, and the lines.
    Used from: the event loop.
    """

    def __init__(self, num_places: int, *, num_of_party: int) -> None:
        self._num_free = num_places
        self._num_of_party = num_of_party
        self._taken: Counter[Hashable] = Counter()
        # In the order of their turns: a party that got a place goes to the end.
        self._lines: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, party: Hashable) -> AsyncIterator[None]:
        """Wait for a place and hold it; raise TooManyInFlight where too many wait already."""
        await self.enter(party)
        try:
            yield
        finally:
            self.leave(party)

    async def enter(self, party: Hashable) -> None:
        """Wait for a place, which `leave` gives back; a caller that is cancelled has none."""
        if self._may_enter(party):
            self._take(party)
            return
        line = self._lines.setdefault(party, deque())
        if len(line) >= MAX_WAITING:
            raise TooManyInFlight(
                f"{len(line)} requests of yours wait for the same: try again",
                code=ErrorCode.TOO_MANY_WAITING,
            )
        place = asyncio.get_running_loop().create_future()
        line.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._forget(party, place)
            else:  # it was given the place at the same time
                self.leave(party)
            raise

    def leave(self, party: Hashable) -> None:
        """Give a place back, to whose turn it is."""
        self._num_free += 1
        self._taken[party] -= 1
        if not self._taken[party]:
            del self._taken[party]
        self._admit()

    def _admit(self) -> None:
        for party, line in list(self._lines.items()):
            place = next((each for each in line if not each.cancelled()), None)
            if place is not None and self._may_enter(party):
                self._take(party)
                place.set_result(None)
                self._forget(party, place)
                if line:
                    self._lines[party] = self._lines.pop(party)

    def _forget(self, party: Hashable, place: asyncio.Future[None]) -> None:
        line = self._lines[party]
        line.remove(place)
        if not line:
            del self._lines[party]

    def _may_enter(self, party: Hashable) -> bool:
        return self._num_free > 0 and self._taken[party] < self._num_of_party

    def _take(self, party: Hashable) -> None:
        self._num_free -= 1
        self._taken[party] += 1
