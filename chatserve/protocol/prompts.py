"""Bodies and objects of the endpoints of registered prompts.

Owns their shapes. What a name, a text or a variable may be is the registry's business. Knows no
store: the objects are made from plain values by whoever read them.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from chatserve.protocol.body import WIRE
from chatserve.protocol.conversation_objects import Reply

_MAX_VERSION = 10**9 - 1


class NewPrompt(BaseModel):
    """The body that registers a prompt, or a new version of the one that has its name.

    `variables` are defaults by the name of a variable; one without a default is not there. A public
    prompt is the preamble of all tenants.

    Owns: nothing beyond its values.
    Used from: the prompts endpoints.
    """

    model_config = WIRE

    name: str | None = None
    text: str
    tenant: Annotated[str, Field(min_length=1)] | None = None
    is_public: bool = False
    variables: dict[str, str] = {}
    is_pinned: bool = True
    priority: int = 0
    ttl_s: float | None = None

    @model_validator(mode="after")
    def _public_is_nobodys(self) -> Self:
        if self.is_public and self.tenant is not None:
            raise PydanticCustomError("conflict", "a public prompt belongs to no tenant")
        return self


class PromptChange(BaseModel):
    """The body that says how a prompt is kept; what is absent stays as it is.

    Owns: nothing beyond its values.
    Used from: the prompts endpoints.
    """

    model_config = WIRE

    is_pinned: bool | None = None
    priority: int | None = None
    ttl_s: float | None = None


class ActiveVersion(BaseModel):
    """The body that makes one version of a prompt the current one.

    Owns: nothing beyond its values.
    Used from: the prompts endpoints.
    """

    model_config = WIRE

    version: int = Field(ge=1, le=_MAX_VERSION)


class VariableObject(Reply):
    """A variable of a prompt. One whose default is null needs a value in every request.

    Owns: nothing beyond its values.
    Used from: `PromptObject`.
    """

    name: str
    default: str | None


class PromptWorkerObject(Reply):
    """What one worker has made of a prompt; the state is null where it has not said so yet.

    Only operators are told which worker it is, and why one refuses.

    Owns: nothing beyond its values.
    Used from: `PromptObject`.
    """

    model: str
    state: str | None
    num_tokens: int
    num_pages: int
    worker_id: str = ""
    is_restored: bool = False
    reason: str | None = None


class PromptObject(Reply):
    """A registered prompt in one of its versions. The preamble belongs to no tenant.

    The text is left out where several are listed; `excerpt` is the beginning of it. Workers have
    the current version only.

    Owns: nothing beyond its values.
    Used from: the prompts endpoints.
    """

    object: Literal["chatserve.prompt"]
    tenant: str | None
    name: str
    version: int
    is_current: bool
    created_at: int
    num_bytes: int
    excerpt: str
    variables: list[VariableObject]
    is_pinned: bool
    priority: int
    ttl_s: float | None
    workers: list[PromptWorkerObject]
    text: str = ""


class PromptList(Reply):
    """Some prompts, or the versions of one.

    Owns: nothing beyond its values.
    Used from: the prompts endpoints.
    """

    object: Literal["list"]
    data: list[PromptObject]


class PromptDeleted(Reply):
    """What is left of a removed prompt, or of one of its versions.

    Owns: nothing beyond its values.
    Used from: the prompts endpoints.
    """

    object: Literal["chatserve.prompt.deleted"]
    name: str
    version: int | None
    deleted: Literal[True]
