"""The response objects: what was asked, what was answered, how it ended.

Owns the record and how it is stored. It is written when a request is queued and completed by the
script that ends the answer; this module only reads and deletes. What is in flight of a request
(payload, lease, queue) belongs to `queue.py`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from chatserve.engine.api import Outcome, RequestId
from chatserve.store import keys, scripts
from chatserve.store.codec import (
    Value,
    dump_json,
    dump_outcome,
    flatten,
    load_outcome,
    pack_token_ids,
    pairs,
    unpack_token_ids,
)
from chatserve.store.redis_client import RedisClient
from chatserve.store.sessions import Message


class ResponseStatus(StrEnum):
    """Where a response is, by the names it has on the wire."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRecord:
    """One response.

    `request` holds the fields of the client's body that the response object repeats, `messages`
    the whole input conversation, for responses that build on this one. `output_text` and
    `output_token_ids` are filled at the end; until then they are in the log. `created_at` is in
    seconds since 1970. `ttl_s` counts from the end, and not for a response in a session, which
    lives as long as that.
    """

    response_id: RequestId
    model: str
    created_at: int
    ttl_s: int
    assistant_message_id: str
    session_id: str | None = None
    request: dict[str, Any] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    status: ResponseStatus = ResponseStatus.QUEUED
    output_text: str = ""
    output_token_ids: tuple[int, ...] = ()
    outcome: Outcome | None = None

    def to_fields(self) -> list[Value]:
        """Return what is stored, all but the id, which is part of the key."""
        return flatten(
            {
                "model": self.model,
                "created_at": self.created_at,
                "ttl_s": self.ttl_s,
                "assistant_message_id": self.assistant_message_id,
                "session_id": self.session_id or "",
                "request": dump_json(self.request),
                "messages": dump_json([message.to_fields() for message in self.messages]),
                "status": self.status.value,
                "output_text": self.output_text,
                "output_token_ids": pack_token_ids(self.output_token_ids),
                "outcome": dump_outcome(self.outcome),
            }
        )

    @classmethod
    def from_fields(cls, response_id: RequestId, fields: dict[str, str]) -> "ResponseRecord":
        return cls(
            response_id=response_id,
            model=fields["model"],
            created_at=int(fields["created_at"]),
            ttl_s=int(fields["ttl_s"]),
            assistant_message_id=fields["assistant_message_id"],
            session_id=fields["session_id"] or None,
            request=orjson.loads(fields["request"]),
            messages=tuple(
                Message.from_fields(pairs(flat)) for flat in orjson.loads(fields["messages"])
            ),
            status=ResponseStatus(fields["status"]),
            output_text=fields["output_text"],
            output_token_ids=unpack_token_ids(fields["output_token_ids"]),
            outcome=load_outcome(fields["outcome"]),
        )


class Responses:
    """The response objects of the store.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def get(self, response_id: RequestId) -> ResponseRecord | None:
        fields = pairs(await self._redis.call("HGETALL", keys.RESPONSE + response_id))
        return ResponseRecord.from_fields(response_id, fields) if fields else None

    async def delete(self, response_id: RequestId) -> bool:
        """Forget a response; False when there is none.

        A request in flight is not stopped by this: cancel it first. Its log goes with it, or when
        the answer has ended.
        """
        return bool(await self._redis.run(scripts.DELETE_RESPONSE, response_id))
