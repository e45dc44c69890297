"""Bodies of the conversations surface; a session of ours is a conversation on the wire.

Owns which fields there are. The objects that come back stand in `conversation_objects.py`, the
document of export and import in `conversation_archive.py`.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from chatserve.protocol.body import WIRE
from chatserve.protocol.messages import InputMessage
from chatserve.protocol.responses import Id, Metadata

MAX_ITEMS = 20
MAX_TITLE_CHARS = 200

Title = Annotated[str, Field(max_length=MAX_TITLE_CHARS)]


class NewConversation(BaseModel):
    """The body of a creation: the first messages, such as the system prompt.

    A title whose source is `words` is a stand-in until the model has found a better one.

    Owns: nothing beyond its values.
    Used from: the conversations endpoints.
    """

    model_config = WIRE

    items: Annotated[list[InputMessage], Field(max_length=MAX_ITEMS)] = []
    metadata: Metadata = {}
    title: Title = ""
    title_source: Annotated[Literal["words", "user"], Field(alias="chatserve:title_source")] = (
        "user"
    )


class ConversationChange(BaseModel):
    """The body of an update; what is absent stays as it is.

    With a version, the update is refused when the conversation has changed since that one.

    Owns: nothing beyond its values.
    Used from: the conversations endpoints.
    """

    model_config = WIRE

    metadata: Metadata | None = None
    title: Title | None = None
    archived: bool | None = None
    pinned: bool | None = None
    version: Annotated[int | None, Field(alias="chatserve:version", ge=0, lt=2**53)] = None


class NewTitle(BaseModel):
    """The body that renames a conversation.

    Owns: nothing beyond its values.
    Used from: the conversations endpoints.
    """

    model_config = WIRE

    title: Title


class ArchiveState(BaseModel):
    """The body that puts a conversation into the archive, or takes it out.

    Owns: nothing beyond its values.
    Used from: the conversations endpoints.
    """

    model_config = WIRE

    archived: bool = True


class NewItems(BaseModel):
    """The body that appends messages, below the newest one or below a parent.

    Owns: nothing beyond its values.
    Used from: the items endpoints.
    """

    model_config = WIRE

    items: Annotated[list[InputMessage], Field(min_length=1, max_length=MAX_ITEMS)]
    parent_id: Annotated[Id | None, Field(alias="chatserve:parent_id")] = None
