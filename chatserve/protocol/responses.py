"""The body of `response.create`: what one answer of the Responses protocol is asked with.

Owns which fields there are and what becomes of each. A body names its past in one of three ways:
not at all (`input` is everything), by `previous_response_id`, or by `conversation`; the last two
exclude each other. Knows no store: what an id means is found out in the gateway.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chatserve.protocol.body import WIRE, Body, NoTools, only
from chatserve.protocol.messages import Messages
from chatserve.protocol.request_fields import InertFields, ModelName, QueueFields
from chatserve.protocol.sampling import RefusedSampling, SamplingFields

MAX_ID_CHARS = 128
MAX_METADATA_PAIRS = 16

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=MAX_METADATA_PAIRS),
]
StreamId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,256}$")]


def as_messages(value: Any) -> Any:
    """Turn a string into the one user message that it stands for."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise PydanticCustomError("input_type", "must be a string or a list of messages")
    return value


def _conversation_id(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("id"), str):
        return value["id"]
    if not isinstance(value, str):
        raise PydanticCustomError("conversation_type", "must be an id or an object with an id")
    return value


class ResponseFields(BaseModel):
    """The fields of a create body that take effect, besides sampling.

    Owns: nothing beyond its values.
    Used from: the gateway, once parsed.
    """

    model_config = WIRE

    model: ModelName
    input: Annotated[Messages, BeforeValidator(as_messages)]
    instructions: str | None = None
    conversation: Annotated[Id, BeforeValidator(_conversation_id)] | None = None
    previous_response_id: Id | None = None
    store: bool = True
    background: bool = False
    metadata: Metadata = {}

    @model_validator(mode="after")
    def _one_past(self) -> Self:
        if self.conversation is not None and self.previous_response_id is not None:
            raise PydanticCustomError(
                "conflict", "conversation and previous_response_id exclude each other"
            )
        if self.conversation is not None and not self.store:
            raise PydanticCustomError("conflict", "a turn of a conversation is always stored")
        return self


class _RefusedResponseFields(BaseModel):
    model_config = WIRE

    n: Annotated[Any, only(1, reason="only one answer per request is served on this socket")] = 1
    tools: NoTools = []
    tool_choice: Annotated[Any, only("none", "auto", reason="tool calls are not served")] = "none"
    max_tool_calls: Annotated[Any, only(None, reason="tool calls are not served")] = None
    generate: Annotated[Any, only(True, reason="warm-up is not served")] = True
    stream: Annotated[Any, only(True, reason="a socket always streams")] = True
    stream_options: Annotated[
        Any, only({}, {"include_obfuscation": False}, reason="obfuscation is not served")
    ] = {}
    include: Annotated[Any, only([], reason="there is nothing to include")] = []
    prompt: Annotated[Any, only(None, reason="prompt templates are not served")] = None
    reasoning: Annotated[Any, only({}, reason="reasoning is not served")] = {}
    text: Annotated[
        Any, only({}, {"format": {"type": "text"}}, reason="only plain text answers are served")
    ] = {}
    truncation: Annotated[Any, only("disabled", reason="truncation is not served")] = "disabled"
    top_logprobs: Annotated[Any, only(0, reason="log probabilities are not served")] = 0
    context_management: Annotated[Any, only([], reason="compaction is not served")] = []
    moderation: Annotated[Any, only(None, reason="moderation is not served")] = None
    parent_id: Annotated[
        Any, Field(alias="chatserve:parent_id"), only(None, reason="branches are not served")
    ] = None


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A validated create body. `ignored` are the names that nobody knew."""

    fields: ResponseFields
    sampling: SamplingFields
    queue: QueueFields
    ignored: tuple[str, ...]


def take_response_request(body: Body) -> ResponseRequest:
    """Read a create body whose envelope has been taken already, or raise InvalidRequest."""
    fields = body.take(ResponseFields)
    sampling = body.take(SamplingFields)
    queue = body.take(QueueFields)
    for model in (RefusedSampling, _RefusedResponseFields, InertFields):
        body.take(model)
    return ResponseRequest(fields, sampling, queue, body.ignored())
