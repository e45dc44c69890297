"""The body of `POST /v1/completions`.

Owns which fields that surface has. A prompt is a text or a list of token ids, alone or as the only
entry of a list. Text is encoded with special tokens off, so that a prompt never speaks for the
template; ids are taken as they are.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator
from pydantic_core import PydanticCustomError

from chatserve.protocol.body import WIRE, Body, only, parse_object
from chatserve.protocol.request_fields import InertFields, QueueFields, ReplyFields
from chatserve.protocol.sampling import RefusedSampling, SamplingFields

# What OpenAI's endpoint generates when the client names no limit.
DEFAULT_MAX_TOKENS = 16


def _prompt(value: Any) -> str | list[int]:
    """Return the one prompt of a body, or say what is wrong with it."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | list):
        value = value[0]
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise PydanticCustomError("prompt_type", "must be a string or a list of token ids")
    if value and isinstance(value[0], str | list):
        raise PydanticCustomError("unsupported", "only one prompt per request is served")
    if not {*map(type, value)} <= {int}:
        position = next(place for place, entry in enumerate(value) if type(entry) is not int)
        raise PydanticCustomError(
            "prompt_type", "entry {position} is no token id", {"position": position}
        )
    return value


class _CompletionFields(BaseModel):
    model_config = WIRE

    prompt: Annotated[Any, BeforeValidator(_prompt)]


class _RefusedCompletionFields(BaseModel):
    model_config = WIRE

    best_of: Annotated[Any, only(1, reason="candidates are not ranked; use n")] = 1
    echo: Annotated[Any, only(False, reason="echo is not served")] = False
    logprobs: Annotated[Any, only(None, reason="log probabilities are not served")] = None
    suffix: Annotated[Any, only(None, "", reason="insertion is not served")] = None


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A validated completion body. `ignored` are the names that nobody knew."""

    prompt: str | list[int]
    reply: ReplyFields
    sampling: SamplingFields
    queue: QueueFields
    ignored: tuple[str, ...]


def parse_completion_request(raw: bytes) -> CompletionRequest:
    """Read a completion body, or raise InvalidRequest."""
    body = Body(parse_object(raw))
    reply = body.take(ReplyFields)
    fields = body.take(_CompletionFields)
    sampling = body.take(SamplingFields)
    queue = body.take(QueueFields)
    for model in (RefusedSampling, _RefusedCompletionFields, InertFields):
        body.take(model)
    return CompletionRequest(fields.prompt, reply, sampling, queue, body.ignored())
