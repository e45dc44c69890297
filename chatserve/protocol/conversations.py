"""Bodies and objects of the conversations surface.

Owns their shapes; a session of ours is a conversation on the wire. Knows no store: the objects are
made from plain values by whoever read them.
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from chatserve.engine.api import Outcome
from chatserve.protocol.body import WIRE, Body, parse_object
from chatserve.protocol.events import (
    failure,
    incomplete_details,
    item_status,
    text_part,
    usage_object,
)
from chatserve.protocol.messages import InputMessage
from chatserve.protocol.responses import Metadata

MAX_FIRST_ITEMS = 20
MAX_TITLE_CHARS = 200


class NewConversation(BaseModel):
    """The body of a creation: the first messages, such as the system prompt.

    Owns: nothing beyond its values.
    Used from: the conversations endpoints.
    """

    model_config = WIRE

    items: Annotated[list[InputMessage], Field(max_length=MAX_FIRST_ITEMS)] = []
    metadata: Metadata = {}
    title: Annotated[str, Field(max_length=MAX_TITLE_CHARS)] = ""


class ConversationChange(BaseModel):
    """The body of an update; what is absent stays as it is.

    Owns: nothing beyond its values.
    Used from: the conversations endpoints.
    """

    model_config = WIRE

    metadata: Metadata | None = None
    title: Annotated[str, Field(max_length=MAX_TITLE_CHARS)] | None = None


def parse_new_conversation(raw: bytes) -> tuple[NewConversation, tuple[str, ...]]:
    """Return the fields of a creation and the names that nobody knew."""
    body = Body(parse_object(raw or b"{}"))
    return body.take(NewConversation), body.ignored()


def parse_conversation_change(raw: bytes) -> tuple[ConversationChange, tuple[str, ...]]:
    """Return the fields of an update and the names that nobody knew."""
    body = Body(parse_object(raw))
    return body.take(ConversationChange), body.ignored()


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One message of a session, as an item needs it. `outcome` is None for what users wrote."""

    item_id: str
    role: str
    text: str
    response_id: str | None
    outcome: Outcome | None

    def to_wire(self) -> dict[str, Any]:
        """Return the item object."""
        item: dict[str, Any] = {
            "id": self.item_id,
            "type": "message",
            "role": self.role,
            "status": "completed",
            "content": [self._part()],
            "chatserve:response_id": self.response_id,
        }
        return {**item, **self._ending(self.outcome)} if self.outcome else item

    def _part(self) -> dict[str, Any]:
        if self.role == "assistant":
            return text_part(self.text)
        return {"type": "input_text", "text": self.text}

    def _ending(self, outcome: Outcome) -> dict[str, Any]:
        details = incomplete_details(outcome)
        return {
            "status": item_status(outcome),
            "chatserve:usage": usage_object(outcome.usage),
            "chatserve:timings": asdict(outcome.timings),
            "chatserve:incomplete_reason": details and details["reason"],
            "chatserve:error": failure(outcome),
        }
