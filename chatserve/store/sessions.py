"""Stored conversations as records: sessions, their messages, and the turns that make them longer.

Owns what is stored of each, and what of a conversation is shown: `Outline` finds the branches among
messages that are only ever appended. `session_store.py` reads and writes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import orjson

from chatserve.engine.api import Outcome, RequestId
from chatserve.error_codes import ErrorCode
from chatserve.errors import Conflict, NotFound
from chatserve.identity import Owner
from chatserve.store.codec import (
    Value,
    dump_outcome,
    flatten,
    load_outcome,
    pack_token_ids,
    unpack_token_ids,
)
from chatserve.store.message_tree import Link, MessageTree

ROOT = "root"
"""What a turn names as its parent to begin a conversation anew; no message has this id."""

MAX_ANSWERS = 16
"""How many answers of one session may be in flight at once, on branches of their own."""

_TITLE_CHARS = 60

# In place of a parent, for the scripts: the message appended just before.
_FOLLOWS = "^"

# In place of its entry, for a deleted message.
_DELETED = "-"


class MessageStatus(StrEnum):
    """Whether a message is all that it was to be."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class TitleSource(StrEnum):
    """Who named a session. A weaker name gives way to a stronger one: words, model, user."""

    NOBODY = ""
    WORDS = "words"  # the first words of the first turn
    MODEL = "model"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `role` is system, developer, user or assistant. An assistant's message has the response that
    made it, the token ids that the model produced, and how it ended. `parent_id` is the message
    that it follows, None at the root level; it may name one that has been deleted. One that
    `continues` its parent is the same answer, which had been cut.
    """

    message_id: str
    role: str
    content: str
    created_at: int
    response_id: RequestId | None = None
    status: MessageStatus = MessageStatus.COMPLETED
    token_ids: tuple[int, ...] = ()
    outcome: Outcome | None = None
    parent_id: str | None = None
    continues: bool = False

    def to_fields(self) -> list[Value]:
        """Return what is stored; the script that ends an answer writes the same fields.

        The first four are those that the scripts look at, in this order.
        """
        return flatten(
            {
                "message_id": self.message_id,
                "parent_id": self.parent_id or "",
                "role": self.role,
                "content": self.content,
                "created_at": self.created_at,
                "response_id": self.response_id or "",
                "status": self.status.value,
                "token_ids": pack_token_ids(self.token_ids),
                "outcome": dump_outcome(self.outcome),
                "continues": int(self.continues),
            }
        )

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> "Message":
        return cls(
            message_id=fields["message_id"],
            role=fields["role"],
            content=fields["content"],
            created_at=int(fields["created_at"]),
            response_id=RequestId(fields["response_id"]) if fields["response_id"] else None,
            status=MessageStatus(fields["status"]),
            token_ids=unpack_token_ids(fields["token_ids"]),
            outcome=load_outcome(fields["outcome"]),
            parent_id=fields["parent_id"] or None,
            continues=fields["continues"] == "1",
        )


def joined(messages: Sequence[Message]) -> list[Message]:
    """Return messages with each answer and those that continue it as one, which ends as they do."""
    whole: list[Message] = []
    for message in messages:
        if message.continues:
            begun = whole.pop()
            content, token_ids = (
                begun.content + message.content,
                begun.token_ids + message.token_ids,
            )
            message = replace(message, content=content, token_ids=token_ids)
        whole.append(message)
    return whole


def in_a_row(messages: Sequence[Message]) -> list[Message]:
    """Return messages that a script is to append one after the other, below what it decides."""
    return [replace(message, parent_id=_FOLLOWS) for message in messages]


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation without its messages. Times are in seconds since 1970.

    `active_response_ids` are the answers in flight, the latest last. `updated_at` is the time of
    the last turn, not of the last renaming; `version` grows with every change of title, metadata,
    archived and pinned, and with nothing else.
    """

    session_id: str
    owner: Owner
    title: str
    created_at: int
    updated_at: int
    metadata: dict[str, str]
    active_response_ids: tuple[RequestId, ...]
    num_messages: int
    version: int = 0
    title_source: TitleSource = TitleSource.NOBODY
    is_archived: bool = False
    is_pinned: bool = False

    @property
    def active_response_id(self) -> RequestId | None:
        """The latest answer in flight, None when there is none."""
        return self.active_response_ids[-1] if self.active_response_ids else None

    @classmethod
    def from_fields(
        cls, session_id: str, fields: Mapping[str, str], num_messages: int
    ) -> "Session":
        active = fields.get("active_response_ids", "").split()
        return cls(
            session_id=session_id,
            owner=Owner(fields["tenant"], fields["user"]),
            title=fields["title"],
            created_at=int(fields["created_ms"]) // 1000,
            updated_at=int(fields["updated_ms"]) // 1000,
            metadata=orjson.loads(fields["metadata"]),
            active_response_ids=tuple(RequestId(each) for each in active),
            num_messages=num_messages,
            version=int(fields["version"]),
            title_source=TitleSource(fields["title_source"]),
            is_archived=fields["archived"] == "1",
            is_pinned=fields["pinned"] == "1",
        )


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a session begins with. Times are in seconds since 1970; None is now."""

    title: str = ""
    title_source: TitleSource = TitleSource.NOBODY
    metadata: Mapping[str, str] | None = None
    is_archived: bool = False
    is_pinned: bool = False
    created_at: int | None = None
    updated_at: int | None = None


@dataclass(frozen=True, slots=True)
class SessionChange:
    """What an update sets; None leaves a field as it is.

    `version` is what the caller read before: the update is refused when the session has changed
    since. None takes the risk.
    """

    title: str | None = None
    metadata: Mapping[str, str] | None = None
    is_archived: bool | None = None
    is_pinned: bool | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """What a request appends to its session before it is queued.

    With a `parent_id` the turn is a branch that follows that message, next to whatever follows it
    already; ROOT begins anew. Without one it follows the message written last, and is refused while
    an answer is in flight, or when that message is no longer `expected_leaf_id`: the one with which
    the history ended that the prompt was built from, empty for no message, None for any. A turn
    that `continues` has no messages: its answer goes on with the one that it follows.
    """

    session_id: str
    messages: tuple[Message, ...]
    parent_id: str | None = None
    expected_leaf_id: str | None = None
    continues: bool = False

    @property
    def title(self) -> str:
        """The title that an untitled session gets: the first words of the user."""
        text = next((message.content for message in self.messages if message.role == "user"), "")
        return first_words(text)


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion leaves behind: the session's answers in flight."""

    active_response_ids: tuple[RequestId, ...]


class MessagePlace(NamedTuple):
    """Where a message is and how large, and which one it follows.

    `entry_id` names its entry in the stream of messages, `num_bytes` are those of its text.
    """

    entry_id: str
    num_bytes: int
    parent_id: str | None

    @classmethod
    def parse(cls, packed: str) -> "MessagePlace":
        entry_id, num_bytes, parent_id = packed.split(" ", 2)
        return cls(entry_id, int(num_bytes), parent_id or None)

    @property
    def order(self) -> tuple[int, int]:
        """Its place in the order of writing."""
        milliseconds, _, number = self.entry_id.partition("-")
        return int(milliseconds), int(number)


class Outline:
    """Which messages a session has and how they follow each other, without what they say.

    Lists of messages are lists of their ids.

    Owns: nothing beyond its values.
    Used from: whoever shows a conversation or goes on with it.
    """

    def __init__(self, places: Mapping[str, MessagePlace]) -> None:
        """Take over the places of all messages that ever were."""
        is_left = {name: place.entry_id != _DELETED for name, place in places.items()}
        left = [name for name in places if is_left[name]]
        left.sort(key=lambda name: places[name].order)
        self.tree = MessageTree(
            (Link(name, places[name].parent_id) for name in left),
            {name: place.parent_id for name, place in places.items() if not is_left[name]},
        )
        self._places = {name: places[name] for name in left}

    @property
    def leaf_id(self) -> str | None:
        """The message written last, with which the newest branch ends; None when all is empty."""
        return self.tree.newest_leaf()

    def all(self) -> list[str]:
        """Return all messages in the order of writing."""
        return list(self._places)

    def branch(self, through: str | None = None) -> list[str]:
        """Return the branch that was written to last, among those through a message or all."""
        return self.tree.path(self.tree.newest_leaf(through))

    def before_turn(self, parent_id: str | None) -> list[str]:
        """Return what a turn with this parent goes on from; see SessionTurn.

        Raises:
            NotFound: The conversation has no such message.
        """
        if parent_id is None:
            return self.branch()
        if parent_id != ROOT and parent_id not in self.tree:
            raise no_message(parent_id)
        return [] if parent_id == ROOT else self.tree.path(parent_id)

    def entry_id(self, message_id: str) -> str:
        """Return where a message is in the stream of messages."""
        return self._places[message_id].entry_id

    def num_bytes(self, message_id: str) -> int:
        """Return how many bytes the text of a message has."""
        return self._places[message_id].num_bytes

    def in_place(self, message: Message) -> Message:
        """Return a message that names the parent which is left, where its own has been deleted.

        What it continued is gone as well then.
        """
        parent_id = self.tree.parent(message.message_id)
        if parent_id == message.parent_id:
            return message
        return replace(message, parent_id=parent_id, continues=False)


def first_words(text: str) -> str:
    """Return as many of a text's first words as a title has room for."""
    line = " ".join(text[: 2**12].split())
    if len(line) <= _TITLE_CHARS:
        return line
    head = line[: _TITLE_CHARS - 1]
    return (head.rpartition(" ")[0] or head) + "…"


def no_message(message_id: str) -> NotFound:
    """Return the refusal of a parent that is no message of the conversation."""
    return NotFound(
        f"the conversation has no message {message_id!r:.200}",
        code=ErrorCode.MESSAGE_NOT_FOUND,
        param="chatserve:parent_id",
    )


def turn_error(reason: str, session_id: str, parent_id: str | None) -> NotFound | Conflict:
    """Return why a script refused to append to a session."""
    match reason:
        case "no_session":
            message = f"there is no conversation {session_id!r}"
            return NotFound(message, code=ErrorCode.CONVERSATION_NOT_FOUND, param="conversation")
        case "no_parent":
            return no_message(parent_id or "")
        case "busy":
            message = f"conversation {session_id!r} has a response in flight"
            code = ErrorCode.RESPONSE_ALREADY_IN_FLIGHT
        case "session_full":
            message = (
                f"conversation {session_id!r} is full: it holds up to 5,000 messages and 16 MiB; "
                "go on in a new one"
            )
            code = ErrorCode.CONVERSATION_FULL
        case "too_many_sessions":
            message = "you have 10,000 conversations, the limit; delete some first"
            code = ErrorCode.TOO_MANY_CONVERSATIONS
        case "too_many":
            message = (
                f"conversation {session_id!r} has {MAX_ANSWERS} responses in flight, the limit"
            )
            code = ErrorCode.RESPONSE_ALREADY_IN_FLIGHT
        case _:
            assert reason == "changed", f"a script replied {reason!r}"
            message = f"conversation {session_id!r} has changed since its history was read"
            code = ErrorCode.CONVERSATION_CHANGED
    return Conflict(message, code=code, param="conversation")
