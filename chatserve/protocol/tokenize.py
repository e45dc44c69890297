"""The bodies of `POST /tokenize` and `POST /detokenize`, as vLLM's server has them.

Owns the fields: a text or the messages of a chat on the way in, token ids on the way out, and back.
Which model is meant where none is named is the endpoints' business.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, FailFast, Field, model_validator
from pydantic_core import PydanticCustomError

from chatserve.protocol.body import WIRE, Body, only, parse_object
from chatserve.protocol.messages import InputMessage, Messages
from chatserve.protocol.request_fields import ModelName

MAX_TOKENS = 2**18

_Token = Annotated[int, Field(ge=0)]


class TokenizeFields(BaseModel):
    """What is to be tokenised: `prompt`, a text as on completions, or `messages`, a chat.

    Owns: nothing beyond its values.
    Used from: the gateway, once parsed.
    """

    model_config = WIRE

    model: ModelName | None = None
    prompt: str | None = None
    messages: Messages | None = None
    add_special_tokens: Annotated[
        Any, only(True, reason="a prompt begins as this model's prompts do")
    ] = True
    add_generation_prompt: Annotated[
        Any, only(True, reason="a chat is tokenised as it would be answered")
    ] = True

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise PydanticCustomError("conflict", "exactly one of prompt and messages is needed")
        return self


class DetokenizeFields(BaseModel):
    """The token ids that are to be read.

    Owns: nothing beyond its values.
    Used from: the gateway, once parsed.
    """

    model_config = WIRE

    model: ModelName | None = None
    tokens: Annotated[list[_Token], FailFast(), Field(max_length=MAX_TOKENS)]


class Tokenized(BaseModel):
    """The reply of `/tokenize`.

    Owns: nothing beyond its values.
    Used from: the gateway.
    """

    count: int
    max_model_len: int
    tokens: list[int]


class Detokenized(BaseModel):
    """The reply of `/detokenize`.

    Owns: nothing beyond its values.
    Used from: the gateway.
    """

    prompt: str


@dataclass(frozen=True, slots=True)
class TokenizeRequest:
    """A validated body: one of `prompt` and `messages`. `ignored` are the names nobody knew."""

    model: str | None
    prompt: str | None
    messages: list[InputMessage]
    ignored: tuple[str, ...]


def parse_tokenize_request(raw: bytes) -> TokenizeRequest:
    """Read the body of `/tokenize`, or raise InvalidRequest."""
    body = Body(parse_object(raw))
    fields = body.take(TokenizeFields)
    return TokenizeRequest(fields.model, fields.prompt, fields.messages or [], body.ignored())


def parse_detokenize_request(raw: bytes) -> tuple[DetokenizeFields, tuple[str, ...]]:
    """Read the body of `/detokenize` and the names nobody knew, or raise InvalidRequest."""
    body = Body(parse_object(raw))
    return body.take(DetokenizeFields), body.ignored()
