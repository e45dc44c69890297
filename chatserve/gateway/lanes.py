"""The lanes of one socket: what runs one after the other, and what runs side by side.

Owns the order. A lane is named by `stream_id`, or is the default lane; its creates run first in,
first out, and lanes run concurrently. A lane exists while it has something to do, so a client may
use as many names as it likes over time. Knows nothing of what a create does.
"""

from collections import deque
from dataclasses import dataclass

from chatserve.engine.api import RequestId
from chatserve.protocol.client_events import Create


@dataclass(slots=True)
class Turn:
    """One create and its response. Mutable: `is_cancelled` is set by a cancel that came early."""

    event: Create
    response_id: RequestId
    is_cancelled: bool = False


class Lanes:
    """All lanes of one connection.

    Owns: the turns that wait or run.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self._lanes: dict[str | None, deque[Turn]] = {}  # the running turn first

    @property
    def num_turns(self) -> int:
        return sum(map(len, self._lanes.values()))

    def add(self, turn: Turn) -> bool:
        """Put a turn at the end of its lane; True if the lane was idle, so that it can run now."""
        lane = self._lanes.setdefault(turn.event.envelope.stream_id, deque())
        lane.append(turn)
        return len(lane) == 1

    def running(self, stream_id: str | None) -> Turn | None:
        """Return the turn that a lane is busy with."""
        lane = self._lanes.get(stream_id)
        return lane[0] if lane else None

    def finish(self, turn: Turn) -> Turn | None:
        """Take the running turn out of its lane and return the one that runs next."""
        stream_id = turn.event.envelope.stream_id
        lane = self._lanes[stream_id]
        assert lane[0] is turn, f"{turn.response_id} is not what lane {stream_id} runs"
        lane.popleft()
        if lane:
            return lane[0]
        del self._lanes[stream_id]
        return None

    def find_create(self, event_id: str) -> Turn | None:
        """Return the turn of a create, running or not, by the id that its client gave it."""
        turns = (turn for lane in self._lanes.values() for turn in lane)
        return next((turn for turn in turns if turn.event.envelope.event_id == event_id), None)

    def is_running(self, turn: Turn) -> bool:
        """Return whether a turn is what its lane is busy with, rather than waiting in it."""
        return self.running(turn.event.envelope.stream_id) is turn

    def find(self, response_id: str) -> Turn | None:
        """Return the running turn of a response; those that wait have not told their id yet."""
        running = (lane[0] for lane in self._lanes.values())
        return next((turn for turn in running if turn.response_id == response_id), None)
