"""Messages as clients send them, on either surface.

Owns roles and content of one message: a string, or a list of text parts under the names that the
two OpenAI surfaces use. Knows no template and no tokens. What cannot be served (images, tool
results, refusals) is refused here with the field and the reason.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from chatserve.protocol.body import WIRE, NoTools, only

MAX_MESSAGES = 4096
MAX_PARTS = 256

Role = Literal["system", "developer", "user", "assistant"]

_TEXT_PARTS = ("text", "input_text", "output_text")


def _is_text_part(kind: str) -> str:
    if kind not in _TEXT_PARTS:
        raise PydanticCustomError("unsupported", "only text content is served")
    return kind


class TextPart(BaseModel):
    """One piece of text inside a message.

    Owns: nothing beyond its values.
    Used from: `InputMessage`.
    """

    model_config = WIRE

    type: Annotated[str, AfterValidator(_is_text_part)]
    text: str
    annotations: list[Any] = []
    logprobs: list[Any] | None = None


def _parts(value: Any) -> Any:
    """Turn a string into the one part that it stands for."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if not isinstance(value, list):
        raise PydanticCustomError("content_type", "must be a string or a list of text parts")
    return value


def _role(value: Any) -> Any:
    if value in ("tool", "function"):
        raise PydanticCustomError("unsupported", "tool calls are not served")
    return value


class InputMessage(BaseModel):
    """One message of a conversation, as a client sends it.

    Members that come back from an earlier answer (`refusal`, `tool_calls` and the like) are
    accepted while they are empty. `name`, `id`, `status` and `phase` have no effect.

    Owns: nothing beyond its values.
    Used from: the bodies of this package.
    """

    model_config = WIRE

    type: Annotated[str, only("message", reason="only messages are served as items")] = "message"
    role: Annotated[Role, BeforeValidator(_role)]
    content: Annotated[list[TextPart], Field(max_length=MAX_PARTS), BeforeValidator(_parts)]
    name: str | None = None
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    tool_calls: NoTools = []
    function_call: Annotated[Any, only(None, reason="tool calls are not served")] = None
    audio: Annotated[Any, only(None, reason="only text content is served")] = None
    refusal: Annotated[Any, only(None, "", reason="only text content is served")] = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content)


Messages = Annotated[list[InputMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
