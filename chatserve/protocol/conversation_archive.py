"""The document in which conversations leave and come back.

Owns its shape and its bounds. It holds what people said and were told, in the order of writing and
with the tree that it forms; of an answer's making (token ids, timings) it holds nothing.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chatserve.errors import InvalidRequest
from chatserve.protocol.body import parse_object
from chatserve.protocol.conversations import Title
from chatserve.protocol.errors import invalid_request
from chatserve.protocol.messages import Role
from chatserve.protocol.responses import Id, Metadata

MAX_CONVERSATIONS = 1000
MAX_ITEMS = 5000
MAX_ITEMS_IN_ALL = 20_000
_MAX_TIME_S = 2**40
_MAX_VALUES = 2**18  # each item is an object of up to seven names

Time = Annotated[int, Field(ge=0, le=_MAX_TIME_S)]

# A document is taken whole or not at all, so a name that nobody knows is a mistake in it.
_DOCUMENT = ConfigDict(strict=True, frozen=True, extra="forbid")


class ArchivedItem(BaseModel):
    """One message; `parent_id` is the one that it follows, null at the root level.

    One that `continues` is the same answer as its parent, which had been cut.

    Owns: nothing beyond its values.
    Used from: export and import.
    """

    model_config = _DOCUMENT

    id: Id
    parent_id: Id | None = None
    role: Role
    text: str
    created_at: Time
    status: Literal["completed", "incomplete", "failed"] = "completed"
    continues: bool = False


class ArchivedConversation(BaseModel):
    """One conversation with all its branches.

    Owns: nothing beyond its values.
    Used from: export and import.
    """

    model_config = _DOCUMENT

    id: Id
    title: Title
    title_source: Literal["", "words", "model", "user"] = "user"
    created_at: Time
    updated_at: Time
    metadata: Metadata = {}
    archived: bool = False
    pinned: bool = False
    items: Annotated[list[ArchivedItem], Field(max_length=MAX_ITEMS)]


class ConversationArchive(BaseModel):
    """The whole document.

    Owns: nothing beyond its values.
    Used from: export and import.
    """

    model_config = _DOCUMENT

    object: Literal["chatserve.conversations"]
    format: Literal[1]
    conversations: Annotated[list[ArchivedConversation], Field(max_length=MAX_CONVERSATIONS)]


class Imported(BaseModel):
    """What an import made: the new ids, in the order of the document, and what was there already.

    Owns: nothing beyond its values.
    Used from: the import endpoint.
    """

    object: Literal["chatserve.import"]
    conversation_ids: list[str]
    num_items: int
    existing_conversation_ids: list[str]


def parse_archive(raw: bytes) -> ConversationArchive:
    """Return a document, or raise InvalidRequest that names the path of the fault."""
    try:
        archive = ConversationArchive.model_validate(parse_object(raw, max_values=_MAX_VALUES))
    except ValidationError as failure:
        raise invalid_request(failure) from None
    num_items = sum(len(conversation.items) for conversation in archive.conversations)
    if num_items > MAX_ITEMS_IN_ALL:
        raise InvalidRequest(
            f"conversations: {num_items} items in all, the limit is {MAX_ITEMS_IN_ALL}",
            param="conversations",
        )
    for place, conversation in enumerate(archive.conversations):
        _check_tree(conversation.items, f"conversations[{place}].items")
    return archive


def archive_head() -> dict[str, Any]:
    """Return the members before the conversations."""
    return {"object": "chatserve.conversations", "format": 1}


def _check_tree(items: list[ArchivedItem], path: str) -> None:
    """Raise InvalidRequest unless every item's parent is one of those before it."""
    known: dict[str, Role] = {}
    for place, item in enumerate(items):
        if item.id in known:
            raise _fault(f"{path}[{place}].id", "an earlier item has this id")
        if item.parent_id is not None and item.parent_id not in known:
            raise _fault(f"{path}[{place}].parent_id", "no earlier item has this id")
        roles = {item.role, known.get(item.parent_id or "")}
        if item.continues and roles != {"assistant"}:
            raise _fault(f"{path}[{place}].continues", "an answer continues an answer")
        known[item.id] = item.role


def _fault(path: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{path}: {reason}", param=path)
