"""The sampling fields, equal on every surface, and the ones that this service refuses.

Owns names, types and ranges of what steers the choice of tokens. Knows neither a model's limits
nor its defaults: those are applied at admission, where the model card is at hand.
"""

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from chatserve.protocol.body import WIRE, only

MAX_STOPS = 16
MAX_STOP_CHARS = 256
MAX_STOP_TOKEN_IDS = 256

OUTPUT_LIMIT_SYNONYMS = frozenset({"max_tokens", "max_completion_tokens"})
"""What other surfaces call `max_output_tokens`."""


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


StopString = Annotated[str, Field(min_length=1, max_length=MAX_STOP_CHARS)]
StopStrings = Annotated[
    list[StopString], Field(max_length=MAX_STOPS), BeforeValidator(_one_or_many)
]
TokenId = Annotated[int, Field(ge=0)]


class SamplingFields(BaseModel):
    """What a client may say about the choice of tokens. None means that it said nothing.

    Owns: nothing beyond its values.
    Used from: the parse functions of the bodies; read at admission.
    """

    model_config = WIRE

    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1)
    min_p: float = Field(0.0, ge=0, le=1)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    max_output_tokens: int | None = Field(None, ge=1)
    min_tokens: int = Field(0, ge=0)
    stop: StopStrings = []
    stop_token_ids: list[TokenId] = Field([], max_length=MAX_STOP_TOKEN_IDS)
    ignore_eos: bool = False

    @property
    def output_limit(self) -> int | None:
        """The most tokens to generate, by whichever of its three names it came."""
        return self.max_tokens or self.max_completion_tokens or self.max_output_tokens

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        limits = {self.max_tokens, self.max_completion_tokens, self.max_output_tokens} - {None}
        if len(limits) > 1:
            raise PydanticCustomError(
                "conflict",
                "max_tokens, max_completion_tokens and max_output_tokens mean the same "
                "and must not differ",
            )
        if self.output_limit is not None and self.min_tokens > self.output_limit:
            raise PydanticCustomError("conflict", "min_tokens must not exceed max_tokens")
        return self


class RefusedSampling(BaseModel):
    """Known sampling fields whose only accepted value is the one without effect.

    Owns: nothing.
    Used from: the parse functions of the bodies.
    """

    model_config = WIRE

    frequency_penalty: Annotated[Any, only(0, reason="penalties are not served")] = 0
    presence_penalty: Annotated[Any, only(0, reason="penalties are not served")] = 0
    repetition_penalty: Annotated[Any, only(1, reason="penalties are not served")] = 1
    logit_bias: Annotated[Any, only({}, reason="logit bias is not served")] = {}
