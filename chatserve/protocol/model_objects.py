"""Models as clients receive them.

Owns the shape: that of the OpenAI API, and what a page needs besides to offer a model. Knows
neither workers nor tenants.
"""

from typing import Annotated, Literal

from pydantic import Field

from chatserve.protocol.conversation_objects import Reply
from chatserve.protocol.sampling_description import SamplingField


class ModelObject(Reply):
    """A model that can be asked, or an alias of it with the text of a persona.

    `persona` is None unless it is an alias; `base_model` is the model that answers.

    Owns: nothing beyond its values.
    Used from: the list of models.
    """

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["chatserve"] = "chatserve"
    max_model_len: int
    base_model: Annotated[str, Field(alias="chatserve:base_model")]
    persona: Annotated[str | None, Field(alias="chatserve:persona")]
    sampling: Annotated[list[SamplingField], Field(alias="chatserve:sampling")]


class ModelList(Reply):
    """All models that a caller may ask.

    Owns: nothing beyond its values.
    Used from: the list of models.
    """

    object: Literal["list"] = "list"
    data: list[ModelObject]
