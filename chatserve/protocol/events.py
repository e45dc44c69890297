"""The server's events of one answer, made from its log.

Owns the shape of every `response.*` event and of the response object inside some of them. Knows no
transport: the lane's `stream_id` is added by whoever sends the event.

The one idea: the log is compact, the wire is not. The text in the `done` events and the response
object in the first and last events are not in the log; `ResponseProjector` puts them back by
folding the events before. So every transport and every replay shows the same events under the same
numbers, and a projector that is to start in the middle must be fed from the beginning.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, assert_never

from chatserve.engine.api import EventKind, FinishReason, LogEvent, Outcome, Usage
from chatserve.error_codes import ErrorCode

OUTPUT_INDEX = 0
CONTENT_INDEX = 0

CONTINUES = "chatserve:continues"
"""On an item that goes on with the one before it."""

TTFT_MS = "chatserve:ttft_ms"
"""On the first delta."""

REASON_LENGTH = "max_output_tokens"
REASON_CANCELLED = "chatserve:cancelled"


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What is known of a response before its first event, and never changes after.

    `parent_id` is the message that it follows in its conversation, if it is in one. `echo` are the
    request's fields that the response object repeats; `ignored` the names that the client sent and
    nobody knew. One that does not generate never has an output. The output of one that `continues`
    goes on with the item before it.
    """

    response_id: str
    message_id: str
    model: str
    created_at: int
    parent_id: str | None = None
    echo: dict[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    generates: bool = True
    continues: bool = False


class ResponseProjector:
    """Turns the log events of one answer into wire events.

    Owns: the text so far, and whether the output item has begun.
    Used from: the event loop, one instance per reader.
    """

    def __init__(self, head: ResponseHead) -> None:
        self._head = head
        self._deltas: list[str] = []
        self._has_item = False
        self._status = "queued"

    @property
    def text(self) -> str:
        """The answer's text as far as it has been folded."""
        return "".join(self._deltas)

    def project(self, sequence_number: int, event: LogEvent) -> dict[str, Any]:
        """Return the wire event for a log event, which must be the next one of the answer."""
        return {
            "type": event.kind.value,
            "sequence_number": sequence_number,
            **self._members(event),
        }

    def _members(self, event: LogEvent) -> dict[str, Any]:
        match event.kind:
            case EventKind.CREATED:
                return self._created()
            case EventKind.QUEUED:
                return {"response": self._response()}
            case EventKind.IN_PROGRESS:
                self._status = "in_progress"
                return {
                    "response": self._response(),
                    "chatserve:input_tokens": event.input_tokens,
                    "chatserve:cached_tokens": event.cached_tokens,
                    "chatserve:queue_ms": event.queue_ms,
                }
            case EventKind.DELTA:
                self._deltas.append(event.text)
                delta = {**self._place(), "delta": event.text, "logprobs": []}
                return delta if event.ttft_ms is None else {**delta, TTFT_MS: event.ttft_ms}
            case EventKind.TEXT_DONE:
                return {**self._place(), "text": self.text, "logprobs": []}
            case EventKind.PART_ADDED | EventKind.PART_DONE:
                return {**self._place(), "part": text_part(self.text)}
            case EventKind.ITEM_ADDED | EventKind.ITEM_DONE:
                return self._item_event(event)
            case EventKind.COMPLETED | EventKind.INCOMPLETE | EventKind.FAILED:
                assert event.outcome is not None, f"{event.kind} without an outcome"
                return {"response": self.final_response(event.outcome)}
            case _:
                assert_never(event.kind)

    def final_response(self, outcome: Outcome) -> dict[str, Any]:
        """Return the response object of an answer that has ended."""
        self._status = outcome.terminal_kind.value.removeprefix("response.")
        response = self._response()
        response["usage"] = usage_object(outcome.usage)
        response["chatserve:timings"] = asdict(outcome.timings)
        response["incomplete_details"] = incomplete_details(outcome)
        response["error"] = failure(outcome)
        if self._has_item:
            response["output"] = [self._item(item_status(outcome))]
        return response

    def response_so_far(self) -> dict[str, Any]:
        """Return the response object of an answer in flight."""
        response = self._response()
        if self._has_item:
            response["output"] = [self._item("in_progress")]
        return response

    def _created(self) -> dict[str, Any]:
        members: dict[str, Any] = {"response": self._response()}
        if self._head.ignored:
            members["chatserve:ignored"] = list(self._head.ignored)
        return members

    def _item_event(self, event: LogEvent) -> dict[str, Any]:
        self._has_item = True
        if event.kind is EventKind.ITEM_ADDED:
            item = {**self._item("in_progress"), "content": []}
        else:
            assert event.outcome is not None, "an item that is done has an outcome"
            item = self._item(item_status(event.outcome))
        return {"output_index": OUTPUT_INDEX, "item": item}

    def _place(self) -> dict[str, Any]:
        return {
            "item_id": self._head.message_id,
            "output_index": OUTPUT_INDEX,
            "content_index": CONTENT_INDEX,
        }

    def _item(self, status: str) -> dict[str, Any]:
        item: dict[str, Any] = {
            "id": self._head.message_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [text_part(self.text)],
        }
        return {**item, CONTINUES: True} if self._head.continues else item

    def _response(self) -> dict[str, Any]:
        return {
            "id": self._head.response_id,
            "object": "response",
            "created_at": self._head.created_at,
            "status": self._status,
            "model": self._head.model,
            "output": [],
            "usage": None,
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            **self._head.echo,
            **self._branch(),
        }

    def _branch(self) -> dict[str, Any]:
        """Return where in its conversation the answer stands, for who wants to branch from it."""
        if self._head.parent_id is None:
            return {}
        return {
            "chatserve:message_id": self._head.message_id,
            "chatserve:parent_id": self._head.parent_id,
        }


def gap_event(head: ResponseHead, text: str, first: int, last: int) -> dict[str, Any]:
    """Return what stands for events that a reader does not get: the whole text up to the last."""
    return {
        "type": "chatserve:response.gap",
        "response_id": head.response_id,
        "from": first,
        "to": last,
        "snapshot": text,
    }


def gap_events(
    head: ResponseHead, text: str, outcome: Outcome, *, starting_after: int, last_sequence: int
) -> list[dict[str, Any]]:
    """Return what a resume gets when the log is gone: a snapshot, and the terminal event.

    The snapshot stands for the events between the reader's last one and the terminal one, which has
    its own number, `last_sequence`. Whoever has that one gets it once more and nothing else;
    whoever has a greater one gets everything, since what they have was lost and written again.
    """
    if starting_after > last_sequence:
        starting_after = -1
    gap = gap_event(head, text, starting_after + 1, last_sequence - 1)
    terminal = {
        "type": outcome.terminal_kind.value,
        "sequence_number": last_sequence,
        "response": final_response(head, text, outcome),
    }
    return [gap, terminal] if starting_after + 1 < last_sequence else [terminal]


def final_response(head: ResponseHead, text: str, outcome: Outcome) -> dict[str, Any]:
    """Return the response object of an answer that has ended, without its events.

    The item begins with the first text, and an answer that came to its own end has one anyway.
    """
    is_whole = outcome.finish_reason in (FinishReason.STOP, FinishReason.LENGTH)
    projector = ResponseProjector(head)
    if text or (is_whole and head.generates):
        projector.project(0, LogEvent(EventKind.ITEM_ADDED))
        projector.project(0, LogEvent(EventKind.DELTA, text))
    return projector.final_response(outcome)


def text_part(text: str) -> dict[str, Any]:
    """Return a content part of an assistant message."""
    return {"type": "output_text", "text": text, "annotations": []}


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return the usage of a response."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def incomplete_details(outcome: Outcome) -> dict[str, str] | None:
    """Return why an answer stopped before its end, or None if it did not."""
    match outcome.finish_reason:
        case FinishReason.LENGTH:
            return {"reason": REASON_LENGTH}
        case FinishReason.ABORT:
            return {"reason": REASON_CANCELLED}
        case _:
            return None


def failure(outcome: Outcome) -> dict[str, Any] | None:
    """Return the error of a failed answer; the base protocol knows one code for our faults."""
    if outcome.finish_reason is not FinishReason.ERROR:
        return None
    return {
        "code": ErrorCode.SERVER_ERROR.value,
        "message": outcome.error_message or "the answer failed",
        "chatserve:code": outcome.error_code,
    }


def item_status(outcome: Outcome) -> str:
    """Return the status of an assistant message that ended like this."""
    return "completed" if outcome.finish_reason is FinishReason.STOP else "incomplete"
