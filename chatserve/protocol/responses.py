"""The body of a create: what one answer of the Responses protocol is asked with.

Owns which fields there are and what becomes of each, on the socket and over HTTP. A body names its
past in one of three ways: not at all (`input` is everything), by `previous_response_id`, or by
`conversation`; the last two exclude each other. Knows no store: what an id means is found out in
the gateway.

`generate: false` asks for no answer, only for the prompt to be in the cache, so its input may be
empty. `chatserve:continue` asks for the rest of an answer that was cut, so it has none. An empty
list as the input of a turn asks for another answer to the message that is there.
"""

from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, Self

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest
from chatserve.protocol.body import WIRE, Body, NoTools, at_most, only, parse_object
from chatserve.protocol.messages import MAX_MESSAGES, InputMessage, TextPart
from chatserve.protocol.request_fields import InertFields, ModelName, QueueFields
from chatserve.protocol.sampling import RefusedSampling, SamplingFields
from chatserve.text.variables import MAX_VARIABLES

MAX_ID_CHARS = 128
MAX_METADATA_PAIRS = 16

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=MAX_METADATA_PAIRS),
    at_most(MAX_METADATA_PAIRS),
]

# How a create travels and where its events go, which is not what it asks for.
_ENVELOPE = ("type", "stream_id", "event_id", "stream", "stream_options")

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


def _variable(value: Any) -> Any:
    """Turn an input text into the string that it stands for."""
    if isinstance(value, dict):
        return TextPart.model_validate(value).text
    return value


Variable = Annotated[str, BeforeValidator(_variable)]


class _PromptFields(BaseModel):
    model_config = WIRE

    id: Id
    version: Id | None = None
    variables: Annotated[
        dict[Id, Variable], Field(max_length=MAX_VARIABLES), at_most(MAX_VARIABLES)
    ] = {}


@dataclass(frozen=True, slots=True)
class PromptReference:
    """A stored prompt that a body refers to. No version means the current one."""

    id: str
    version: str | None
    variables: dict[str, str]


class ResponseFields(BaseModel):
    """The fields of a create body that take effect, besides sampling.

    Owns: nothing beyond its values.
    Used from: the gateway, once parsed.
    """

    model_config = WIRE

    model: ModelName
    input: Annotated[
        list[InputMessage], Field(max_length=MAX_MESSAGES), BeforeValidator(as_messages)
    ] = []
    instructions: str | None = None
    prompt: _PromptFields | None = None
    conversation: Annotated[Id, BeforeValidator(_conversation_id)] | None = None
    parent_id: Annotated[Id | None, Field(alias="chatserve:parent_id")] = None
    continues: Annotated[bool, Field(alias="chatserve:continue")] = False
    previous_response_id: Id | None = None
    store: bool = True
    background: bool = False
    generate: bool = True
    metadata: Metadata = {}

    @property
    def prompt_reference(self) -> PromptReference | None:
        """The stored prompt that goes in front of the instructions."""
        if self.prompt is None:
            return None
        return PromptReference(self.prompt.id, self.prompt.version, self.prompt.variables)

    @model_validator(mode="after")
    def _one_past(self) -> Self:
        if self.conversation is not None and self.previous_response_id is not None:
            raise PydanticCustomError(
                "conflict", "conversation and previous_response_id exclude each other"
            )
        if self.conversation is not None and not self.store:
            raise PydanticCustomError("conflict", "a turn of a conversation is always stored")
        if self.parent_id is not None and self.conversation is None:
            raise PydanticCustomError(
                "conflict", "chatserve:parent_id names a message of the conversation to be named"
            )
        return self

    @model_validator(mode="after")
    def _continues_an_answer(self) -> Self:
        if self.continues and self.conversation is None:
            raise PydanticCustomError(
                "conflict", "chatserve:continue needs the conversation that the answer is in"
            )
        if self.continues and (self.input or not self.generate):
            raise PydanticCustomError(
                "conflict", "chatserve:continue goes on with an answer: there can be no input"
            )
        return self


class _RefusedResponseFields(BaseModel):
    model_config = WIRE

    n: Annotated[Any, only(1, reason="only one answer per request is served here")] = 1
    tools: NoTools = []
    tool_choice: Annotated[Any, only("none", "auto", reason="tool calls are not served")] = "none"
    max_tool_calls: Annotated[Any, only(None, reason="tool calls are not served")] = None
    stream_options: Annotated[
        Any, only({}, {"include_obfuscation": False}, reason="obfuscation is not served")
    ] = {}
    include: Annotated[Any, only([], reason="there is nothing to include")] = []
    reasoning: Annotated[Any, only({}, reason="reasoning is not served")] = {}
    text: Annotated[
        Any, only({}, {"format": {"type": "text"}}, reason="only plain text answers are served")
    ] = {}
    truncation: Annotated[Any, only("disabled", reason="truncation is not served")] = "disabled"
    top_logprobs: Annotated[Any, only(0, reason="log probabilities are not served")] = 0
    context_management: Annotated[Any, only([], reason="compaction is not served")] = []
    moderation: Annotated[Any, only(None, reason="moderation is not served")] = None


class _SocketFields(BaseModel):
    model_config = WIRE

    stream: Annotated[Any, only(True, reason="a socket always streams")] = True


class _HttpFields(BaseModel):
    model_config = WIRE

    stream: bool = False


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A validated create body.

    `stream` asks for the events instead of the response object. `ignored` are the names that
    nobody knew. `fingerprint` is the same for bodies that say the same.
    """

    fields: ResponseFields
    sampling: SamplingFields
    queue: QueueFields
    stream: bool
    ignored: tuple[str, ...]
    fingerprint: str


def parse_response_request(raw: bytes) -> ResponseRequest:
    """Read the body of a create over HTTP, or raise InvalidRequest."""
    body = Body(parse_object(raw))
    stream = body.take(_HttpFields).stream
    return _take(body, stream=stream)


def take_response_request(body: Body) -> ResponseRequest:
    """Read a create on a socket, whose envelope was taken already, or raise InvalidRequest."""
    body.take(_SocketFields)
    return _take(body, stream=True)


def _take(body: Body, *, stream: bool) -> ResponseRequest:
    fields = body.take(ResponseFields)
    if fields.background and not fields.store:
        raise InvalidRequest(
            "background: an answer that is not stored could never be read", param="background"
        )
    if fields.generate and not (fields.input or fields.continues or _answers_anew(fields, body)):
        _refuse_no_input(body)
    sampling = body.take(SamplingFields)
    queue = body.take(QueueFields)
    for model in (RefusedSampling, _RefusedResponseFields, InertFields):
        body.take(model)
    return ResponseRequest(
        fields, sampling, queue, stream, body.ignored(), body.fingerprint(without=_ENVELOPE)
    )


def _answers_anew(fields: ResponseFields, body: Body) -> bool:
    """Return whether a create says nothing new on purpose: a message gets one more answer."""
    return fields.conversation is not None and body.has("input")


def _refuse_no_input(body: Body) -> NoReturn:
    if body.has("input"):
        raise InvalidRequest("input: there must be a message at least", param="input")
    raise InvalidRequest("input is required", code=ErrorCode.MISSING, param="input")
