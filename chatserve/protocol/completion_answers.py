"""The answers of the two completion surfaces: chunks of a stream, and the whole object.

Owns the shapes of `chat.completion` and `text_completion`, streamed or not. Both are made from the
same log events as the Responses protocol; nothing is numbered, and only text, the end and the
usage are shown. Knows no transport.

The one idea: the finish reason of a choice stands in one chunk of its own, after its text and
before the usage of all; until then it is null, and a stream that never gets there has failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chatserve.engine.api import EventKind, FinishReason, LogEvent, Outcome, Usage
from chatserve.error_codes import ErrorCode
from chatserve.errors import AnswerFailed
from chatserve.protocol.errors import answer_failed


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """What every chunk of an answer repeats, whichever of its choices it belongs to."""

    answer_id: str
    model: str
    created: int


class AnswerShape(Protocol):
    """How one surface writes text: the difference between the two kinds of answers."""

    def opening(self) -> dict[str, Any] | None:
        """Return the choice of the first chunk, or None if the surface has no such chunk."""

    def delta(self, text: str) -> dict[str, Any]:
        """Return the choice of a chunk with text."""

    def ending(self, reason: str) -> dict[str, Any]:
        """Return the choice of the chunk with the finish reason."""

    def whole(self, text: str, reason: str) -> dict[str, Any]:
        """Return the choice of an answer that is not streamed."""

    def object_name(self, *, streamed: bool) -> str:
        """Return the `object` member."""


class ChatShape:
    """Chat completions: messages and their deltas.

    Owns: nothing.
    Used from: the chat completions endpoint.
    """

    def opening(self) -> dict[str, Any] | None:
        return _choice(delta={"role": "assistant", "content": ""})

    def delta(self, text: str) -> dict[str, Any]:
        return _choice(delta={"content": text})

    def ending(self, reason: str) -> dict[str, Any]:
        return _choice(reason, delta={})

    def whole(self, text: str, reason: str) -> dict[str, Any]:
        return _choice(reason, message={"role": "assistant", "content": text, "refusal": None})

    def object_name(self, *, streamed: bool) -> str:
        return "chat.completion.chunk" if streamed else "chat.completion"


class TextShape:
    """Completions: bare text.

    Owns: nothing.
    Used from: the completions endpoint.
    """

    def opening(self) -> dict[str, Any] | None:
        return None

    def delta(self, text: str) -> dict[str, Any]:
        return _choice(text=text)

    def ending(self, reason: str) -> dict[str, Any]:
        return _choice(reason, text="")

    def whole(self, text: str, reason: str) -> dict[str, Any]:
        return _choice(reason, text=text)

    def object_name(self, *, streamed: bool) -> str:
        return "text_completion"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers to a request, once it has ended well."""

    text: str
    reason: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes the choices of one answer in the shape of its surface.

    Owns: nothing; it is a function of its fields and the events.
    Used from: the event loop, one instance per answer.
    """

    head: AnswerHead
    shape: AnswerShape
    include_usage: bool = False

    def chunk(self, index: int, event: LogEvent) -> dict[str, Any] | None:
        """Return the chunk that an event of a choice becomes, if any, or raise AnswerFailed."""
        choice = self._choice(event)
        if choice is None:
            return None
        chunk = {**self._envelope(streamed=True), "choices": [{"index": index, **choice}]}
        return {**chunk, "usage": None} if self.include_usage else chunk

    def usage_chunk(self, usages: Sequence[Usage]) -> dict[str, Any]:
        """Return the chunk that ends a stream whose client asked for the usage."""
        usage = completion_usage(usages)
        return {**self._envelope(streamed=True), "choices": [], "usage": usage}

    def whole(self, choices: Sequence[Choice]) -> dict[str, Any]:
        """Return the object of an answer that is not streamed."""
        return {
            **self._envelope(streamed=False),
            "choices": [
                {"index": index, **self.shape.whole(choice.text, choice.reason)}
                for index, choice in enumerate(choices)
            ],
            "usage": completion_usage([choice.usage for choice in choices]),
        }

    def _choice(self, event: LogEvent) -> dict[str, Any] | None:
        if event.kind is EventKind.IN_PROGRESS:
            return self.shape.opening()
        if event.kind is EventKind.DELTA:
            return self.shape.delta(event.text) if event.text else None
        if event.outcome is None or not event.kind.is_terminal:
            return None
        return self.shape.ending(finish_reason(event.outcome))

    def _envelope(self, *, streamed: bool) -> dict[str, Any]:
        return {
            "id": self.head.answer_id,
            "object": self.shape.object_name(streamed=streamed),
            "created": self.head.created,
            "model": self.head.model,
        }


def finish_reason(outcome: Outcome) -> str:
    """Return the finish reason, or raise AnswerFailed for an end that these surfaces lack."""
    match outcome.finish_reason:
        case FinishReason.STOP | FinishReason.LENGTH:
            return outcome.finish_reason.value
        case FinishReason.ABORT:
            raise AnswerFailed("the answer was cancelled", code=ErrorCode.CANCELLED)
        case _:
            raise answer_failed(outcome.error_message, outcome.error_code)


def completion_usage(usages: Sequence[Usage]) -> dict[str, Any]:
    """Return the usage of all choices under the names of the completion surfaces.

    Their prompt is one and counts once. Of it, cached is what none of them had to compute: what
    one has found because another had just computed it does not count.
    """
    input_tokens = usages[0].input_tokens
    output_tokens = sum(usage.output_tokens for usage in usages)
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        "prompt_tokens_details": {"cached_tokens": min(usage.cached_tokens for usage in usages)},
    }


def _choice(reason: str | None = None, **members: Any) -> dict[str, Any]:
    return {**members, "logprobs": None, "finish_reason": reason}
