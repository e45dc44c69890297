"""The body of `POST /v1/chat/completions`.

Owns which fields that surface has and what becomes of each. Knows no model and no answer: the
shapes of the answer stand in `completion_answers.py`.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel

from chatserve.protocol.body import WIRE, Body, NoTools, only, parse_object
from chatserve.protocol.messages import InputMessage, Messages
from chatserve.protocol.request_fields import InertFields, QueueFields, ReplyFields
from chatserve.protocol.sampling import RefusedSampling, SamplingFields


class _ChatFields(BaseModel):
    model_config = WIRE

    messages: Messages


class _InertChatFields(BaseModel):
    model_config = WIRE

    store: bool | None = None
    metadata: dict[str, Any] | None = None


class _RefusedChatFields(BaseModel):
    model_config = WIRE

    tools: NoTools = []
    functions: NoTools = []
    tool_choice: Annotated[Any, only("none", "auto", reason="tool calls are not served")] = "none"
    function_call: Annotated[Any, only("none", "auto", reason="tool calls are not served")] = "none"
    response_format: Annotated[
        Any, only({"type": "text"}, reason="only plain text answers are served")
    ] = None
    logprobs: Annotated[Any, only(False, reason="log probabilities are not served")] = False
    top_logprobs: Annotated[Any, only(0, reason="log probabilities are not served")] = 0
    modalities: Annotated[Any, only(["text"], reason="only text is served")] = None
    audio: Annotated[Any, only(None, reason="only text is served")] = None
    prediction: Annotated[Any, only(None, reason="predicted outputs are not served")] = None
    reasoning_effort: Annotated[Any, only("none", reason="reasoning is not served")] = None
    verbosity: Annotated[Any, only("medium", reason="verbosity is not served")] = None
    web_search_options: Annotated[Any, only(None, reason="web search is not served")] = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A validated chat completion body. `ignored` are the names that nobody knew."""

    messages: list[InputMessage]
    reply: ReplyFields
    sampling: SamplingFields
    queue: QueueFields
    ignored: tuple[str, ...]


def parse_chat_request(raw: bytes) -> ChatRequest:
    """Read a chat completion body, or raise InvalidRequest."""
    body = Body(parse_object(raw))
    reply = body.take(ReplyFields)
    fields = body.take(_ChatFields)
    sampling = body.take(SamplingFields)
    queue = body.take(QueueFields)
    for model in (RefusedSampling, _RefusedChatFields, InertFields, _InertChatFields):
        body.take(model)
    return ChatRequest(fields.messages, reply, sampling, queue, body.ignored())
