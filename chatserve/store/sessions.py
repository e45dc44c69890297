"""Stored conversations: their messages, titles and order.

Owns the records Session and Message and how they are stored. Messages are only ever appended: by
`create` here, by `RequestQueue.enqueue` for the user's side of a turn, and by the script that ends
an answer for the model's side. Knows nothing of who may see a session.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson

from chatserve.engine.api import Outcome, RequestId
from chatserve.errors import NotFound
from chatserve.store import keys, scripts
from chatserve.store.codec import (
    Command,
    Value,
    counted,
    dump_json,
    dump_outcome,
    flatten,
    load_outcome,
    pack_token_ids,
    pairs,
    unpack_token_ids,
)
from chatserve.store.redis_client import RedisClient
from chatserve.store.streams import parse_entries

_TITLE_WORDS = 6
_TITLE_CHARS = 60


class MessageStatus(StrEnum):
    """Whether a message is all that it was to be."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `role` is system, developer, user or assistant. An assistant's message has the response that
    made it, the token ids that the model produced, and how it ended.
    """

    message_id: str
    role: str
    content: str
    created_at: int
    response_id: RequestId | None = None
    status: MessageStatus = MessageStatus.COMPLETED
    token_ids: tuple[int, ...] = ()
    outcome: Outcome | None = None

    def to_fields(self) -> list[Value]:
        """Return what is stored; the script that ends an answer writes the same fields."""
        return flatten(
            {
                "message_id": self.message_id,
                "role": self.role,
                "content": self.content,
                "created_at": self.created_at,
                "response_id": self.response_id or "",
                "status": self.status.value,
                "token_ids": pack_token_ids(self.token_ids),
                "outcome": dump_outcome(self.outcome),
            }
        )

    @classmethod
    def from_fields(cls, fields: dict[str, str]) -> "Message":
        return cls(
            message_id=fields["message_id"],
            role=fields["role"],
            content=fields["content"],
            created_at=int(fields["created_at"]),
            response_id=RequestId(fields["response_id"]) if fields["response_id"] else None,
            status=MessageStatus(fields["status"]),
            token_ids=unpack_token_ids(fields["token_ids"]),
            outcome=load_outcome(fields["outcome"]),
        )


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation without its messages. Times are in seconds since 1970.

    `active_response_id` names the answer in flight; while there is one, no other turn may begin.
    `updated_at` is the time of the last turn, not of the last renaming.
    """

    session_id: str
    title: str
    created_at: int
    updated_at: int
    metadata: dict[str, str]
    active_response_id: RequestId | None
    num_messages: int


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """What a request appends to its session before it is queued.

    `expected_num_messages` is the length of the history that the prompt was built from; a session
    that has grown since refuses the turn. None accepts any.
    """

    session_id: str
    messages: tuple[Message, ...]
    expected_num_messages: int | None = None

    @property
    def title(self) -> str:
        """The title that an untitled session gets: the first words of the user."""
        text = next((message.content for message in self.messages if message.role == "user"), "")
        return " ".join(text.split(maxsplit=_TITLE_WORDS)[:_TITLE_WORDS])[:_TITLE_CHARS].rstrip()


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion leaves behind: the session's answer in flight, if there was one."""

    active_response_id: RequestId | None


class Sessions:
    """The conversations of the store.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def create(
        self,
        session_id: str,
        *,
        title: str = "",
        metadata: dict[str, str] | None = None,
        messages: Sequence[Message] = (),
    ) -> Session:
        """Store a new session; one that exists under this id is returned as it is."""
        arguments: list[Value] = [session_id, title, dump_json(metadata or {})]
        for message in messages:
            arguments += counted(message.to_fields())
        await self._redis.run(scripts.CREATE_SESSION, *arguments)
        session = await self.get(session_id)
        if session is None:
            raise NotFound(f"session {session_id!r} was deleted while it was created")
        return session

    async def get(self, session_id: str) -> Session | None:
        return (await self._get_many([session_id]))[0]

    async def messages(self, session_id: str) -> list[Message]:
        """Return all messages, oldest first; none for a session that does not exist."""
        reply = await self._redis.call("XRANGE", keys.MESSAGES + session_id, "-", "+")
        return [Message.from_fields(entry.fields) for entry in parse_entries(reply)]

    async def list(self, limit: int, before: str | None = None) -> list[Session]:
        """Return up to `limit` sessions, the most recently used first.

        Args:
            limit: How many at most.
            before: The last session of the page before this one.

        Raises:
            NotFound: `before` has been deleted, so there is no place to go on from.
        """
        assert limit > 0, f"a page of {limit} sessions"
        first = 0
        if before is not None:
            rank = await self._redis.call("ZREVRANK", keys.SESSIONS, before)
            if rank is None:
                message = f"there is no session {before!r} to list from"
                raise NotFound(message, code="conversation_not_found", param="before")
            first = rank + 1
        session_ids = await self._redis.call("ZREVRANGE", keys.SESSIONS, first, first + limit - 1)
        return [found for found in await self._get_many(session_ids) if found is not None]

    async def update(
        self,
        session_id: str,
        *,
        title: str | None = None,
        metadata: dict[str, str] | None = None,
    ) -> Session | None:
        """Set the given fields and no other; None when there is no such session."""
        changes: list[Value] = []
        if title is not None:
            changes += ["title", title]
        if metadata is not None:
            changes += ["metadata", dump_json(metadata)]
        await self._redis.run(scripts.UPDATE_SESSION, session_id, *changes)
        return await self.get(session_id)

    async def delete(self, session_id: str) -> Deleted | None:
        """Delete a session, its messages and the responses that made them.

        Returns None when there is no such session. An answer in flight goes on; it is the caller's
        to stop.
        """
        active = await self._redis.run(scripts.DELETE_SESSION, session_id)
        return None if active is None else Deleted(RequestId(active) if active else None)

    async def _get_many(self, session_ids: Sequence[str]) -> Sequence[Session | None]:
        commands: list[Command] = []
        for session_id in session_ids:
            commands.append(("HGETALL", keys.SESSION + session_id))
            commands.append(("XLEN", keys.MESSAGES + session_id))
        replies = await self._redis.call_many(commands)
        return [
            _parse_session(session_id, pairs(flat), num_messages)
            for session_id, flat, num_messages in zip(
                session_ids, replies[::2], replies[1::2], strict=True
            )
        ]


def _parse_session(session_id: str, fields: dict[str, str], num_messages: int) -> Session | None:
    if not fields:
        return None
    active = fields.get("active_response_id")
    return Session(
        session_id=session_id,
        title=fields["title"],
        created_at=int(fields["created_ms"]) // 1000,
        updated_at=int(fields["updated_ms"]) // 1000,
        metadata=orjson.loads(fields["metadata"]),
        active_response_id=RequestId(active) if active else None,
        num_messages=num_messages,
    )
