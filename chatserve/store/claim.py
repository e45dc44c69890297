"""A request as the worker gets it that claims it.

Owns what is taken over of an answer that an earlier worker had begun: its text, its tokens, and
what its readers were told of its beginning. All of that is in its log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from chatserve.engine.api import GenerationRequest, LogEvent


@dataclass(frozen=True, slots=True)
class LoggedStart:
    """What readers were told of how an answer began, by an earlier owner; None: of nothing yet."""

    cached_tokens: int = 0
    queue_ms: float | None = None
    ttft_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A request that this worker now owns, until its lease ends.

    `logged_token_ids`, `logged_text` and `logged_start` are what readers already have from earlier
    owners, and `next_sequence` is the number of the next event. `queued_ms` counts from the first
    enqueue.
    """

    request: GenerationRequest
    epoch: int
    next_sequence: int
    logged_token_ids: tuple[int, ...]
    logged_text: str
    queued_ms: int
    logged_start: LoggedStart = LoggedStart()

    @classmethod
    def of(
        cls,
        request: GenerationRequest,
        epoch: int,
        next_sequence: int,
        queued_ms: int,
        events: Sequence[LogEvent],
    ) -> Self:
        """Return a claim on a request with these events in its log."""
        return cls(
            request=request,
            epoch=epoch,
            next_sequence=next_sequence,
            logged_token_ids=tuple(i for event in events for i in event.token_ids),
            logged_text="".join(event.text for event in events),
            queued_ms=queued_ms,
            logged_start=_start_of(events),
        )


def _start_of(events: Sequence[LogEvent]) -> LoggedStart:
    begun = next((event for event in events if event.queue_ms is not None), None)
    if begun is None:
        return LoggedStart()
    ttft_ms = next((event.ttft_ms for event in events if event.ttft_ms is not None), None)
    return LoggedStart(begun.cached_tokens, begun.queue_ms, ttft_ms)
