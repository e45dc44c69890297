"""Objects of the conversations surface, as clients receive them.

Owns their shapes, which the OpenAPI document repeats. Knows no store: they are made from plain
values by whoever read them.
"""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from chatserve.engine.api import Outcome
from chatserve.protocol.events import (
    failure,
    incomplete_details,
    item_status,
    text_part,
    usage_object,
)

# Aliases carry the prefix of what is ours; code makes these objects by plain names.
REPLY = ConfigDict(frozen=True, populate_by_name=True)


EXCERPT_CHARS = 160


def excerpt_of(text: str, start: int = 0) -> str:
    """Return a piece of a text as one line."""
    return " ".join(text[start : start + EXCERPT_CHARS].split())


class Reply(BaseModel):
    """A body that this service sends. A member that was never set is left out.

    Owns: nothing beyond its values.
    Used from: the endpoints.
    """

    model_config = REPLY

    def to_wire(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_unset=True)


class ConversationObject(Reply):
    """A conversation without its messages. Times are in seconds since 1970.

    Owns: nothing beyond its values.
    Used from: the conversations endpoints.
    """

    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, str]
    title: str
    updated_at: int
    archived: bool
    pinned: bool
    active_response_id: str | None
    active_response_ids: list[str]
    version: Annotated[int, Field(alias="chatserve:version")]
    title_source: Annotated[
        Literal["", "words", "model", "user"], Field(alias="chatserve:title_source")
    ]


class ConversationDeleted(Reply):
    """What is left of a deleted conversation.

    Owns: nothing beyond its values.
    Used from: the conversations endpoints.
    """

    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: Literal[True] = True

    @classmethod
    def of(cls, session_id: str) -> "ConversationDeleted":
        return cls(id=session_id, object="conversation.deleted", deleted=True)


class ConversationList(Reply):
    """A page of conversations.

    Owns: nothing beyond its values.
    Used from: the list endpoint.
    """

    object: Literal["list"]
    data: list[ConversationObject]
    has_more: bool


class ItemObject(Reply):
    """One message. What is below `response_id` is there for answers only.

    Owns: nothing beyond its values.
    Used from: the items endpoints.
    """

    id: str
    type: Literal["message"]
    role: Literal["system", "developer", "user", "assistant"]
    status: Literal["completed", "incomplete"]
    content: list[dict[str, Any]]
    parent_id: Annotated[str | None, Field(alias="chatserve:parent_id")]
    response_id: Annotated[str | None, Field(alias="chatserve:response_id")]
    usage: Annotated[dict[str, Any] | None, Field(alias="chatserve:usage")] = None
    timings: Annotated[dict[str, Any] | None, Field(alias="chatserve:timings")] = None
    incomplete_reason: Annotated[str | None, Field(alias="chatserve:incomplete_reason")] = None
    error: Annotated[dict[str, Any] | None, Field(alias="chatserve:error")] = None
    continues: Annotated[bool, Field(alias="chatserve:continues")] = False


class ItemList(Reply):
    """A page of messages.

    Owns: nothing beyond its values.
    Used from: the items endpoints.
    """

    object: Literal["list"]
    data: list[ItemObject]
    first_id: str
    last_id: str
    has_more: bool

    @classmethod
    def whole(cls, items: list[ItemObject]) -> "ItemList":
        """Return the list of all these items, as one page."""
        return cls(
            object="list",
            data=items,
            first_id=items[0].id if items else "",
            last_id=items[-1].id if items else "",
            has_more=False,
        )


class Match(Reply):
    """Where a search found its words: in an item, or in the title if that is null.

    Owns: nothing beyond its values.
    Used from: the search endpoint.
    """

    item_id: str | None
    role: str | None
    excerpt: str


class Hit(Reply):
    """A conversation in which a search found its words.

    Owns: nothing beyond its values.
    Used from: the search endpoint.
    """

    conversation: ConversationObject
    matches: list[Match]


class HitList(Reply):
    """What one call of a search found. `cursor` goes on where it stopped; null is the end.

    Owns: nothing beyond its values.
    Used from: the search endpoint.
    """

    object: Literal["list"]
    data: list[Hit]
    has_more: bool
    cursor: str | None


class BranchObject(Reply):
    """A branch, by the message that it ends with.

    Owns: nothing beyond its values.
    Used from: the branches endpoint.
    """

    item_id: str
    role: str
    excerpt: str
    created_at: int
    num_items: int
    is_newest: bool


class Fork(Reply):
    """Messages that follow the same one, in the order of writing.

    Owns: nothing beyond its values.
    Used from: the branches endpoint.
    """

    parent_id: str | None
    item_ids: list[str]


class BranchList(Reply):
    """All branches of a conversation, and where they part.

    Owns: nothing beyond its values.
    Used from: the branches endpoint.
    """

    object: Literal["list"]
    data: list[BranchObject]
    forks: list[Fork]
    has_more: Literal[False]


def item_content(role: str, text: str) -> list[dict[str, Any]]:
    """Return the parts of a message."""
    return [text_part(text) if role == "assistant" else {"type": "input_text", "text": text}]


def item_ending(outcome: Outcome) -> dict[str, Any]:
    """Return the members that tell how an answer ended, by their names in ItemObject."""
    details = incomplete_details(outcome)
    return {
        "status": item_status(outcome),
        "usage": usage_object(outcome.usage),
        "timings": asdict(outcome.timings),
        "incomplete_reason": details and details["reason"],
        "error": failure(outcome),
    }
