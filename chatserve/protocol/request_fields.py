"""The fields that bodies have in common, besides sampling.

Owns which model to ask, for how many choices, whether to stream and how, how urgent the answer is,
and what clients send to everybody and means nothing here. Knows no surface.
"""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from chatserve.protocol.body import WIRE, only

MAX_NAME_CHARS = 256
ModelName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
MAX_CHOICES = 8
MAX_PRIORITY = 10
MAX_TIMEOUT_S = 24 * 3600
Label = Annotated[str, Field(max_length=MAX_NAME_CHARS)]


class StreamOptions(BaseModel):
    """What a stream carries besides text.

    Owns: nothing beyond its values.
    Used from: `ReplyFields`.
    """

    model_config = WIRE

    include_usage: bool | None = None
    include_obfuscation: Annotated[Any, only(False, reason="obfuscation is not served")] = False


class ReplyFields(BaseModel):
    """By which model, with how many choices, streamed or whole: shared by both completion surfaces.

    Owns: nothing beyond its values.
    Used from: the parse functions of the completion bodies.
    """

    model_config = WIRE

    model: ModelName
    n: int = Field(1, ge=1, le=MAX_CHOICES)
    stream: bool = False
    stream_options: StreamOptions | None = None

    @property
    def include_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    @model_validator(mode="after")
    def _options_need_a_stream(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise PydanticCustomError("conflict", "stream_options need stream to be true")
        return self


class QueueFields(BaseModel):
    """How urgent a request is among its tenant's, and how many seconds it may take in all.

    Owns: nothing beyond its values.
    Used from: the parse functions of all bodies; read at admission.
    """

    model_config = WIRE

    priority: int = Field(0, ge=-MAX_PRIORITY, le=MAX_PRIORITY)
    timeout: float | None = Field(None, gt=0, le=MAX_TIMEOUT_S)


class InertFields(BaseModel):
    """Fields that are accepted, checked for their type, and have no effect here.

    Owns: nothing.
    Used from: the parse functions of all bodies.
    """

    model_config = WIRE

    user: Label | None = None
    safety_identifier: Label | None = None
    prompt_cache_key: Label | None = None
    prompt_cache_retention: Label | None = None
    service_tier: Label | None = None
    parallel_tool_calls: bool | None = None
