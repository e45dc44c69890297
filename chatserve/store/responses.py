"""The response objects: what was asked, what was answered, how it ended.

Owns the record and how it is stored. It is written when a request is queued and completed by the
script that ends the answer; this module only reads and deletes. What is in flight of a request
(payload, lease, queue) belongs to `queue.py`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from chatserve.engine.api import DEFAULT_TENANT, Outcome, RequestId
from chatserve.identity import Owner
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
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient
from chatserve.store.sessions import Message


class ResponseStatus(StrEnum):
    """Where a response is, by the names it has on the wire."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class Abandonment(StrEnum):
    """What it means for an answer that its last reader has gone."""

    ABORT = "abort"
    GRACE = "grace"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRecord:
    """One response.

    `tenant` and `user` are whose it is. `fingerprint` tells a repetition of its create from another
    create of the same id, and is empty where there can be neither. One that does not generate has
    no answer and never will have.

    `request` holds the fields of the client's body that the response object repeats. `messages` are
    the whole input conversation, for responses that build on this one; in a session they are there,
    up to `parent_id`. `output_text` and `output_token_ids` are filled at the end; until then they
    are in the log. `created_at` is in seconds since 1970. `ttl_s` counts from the end, and not for
    a response in a session, which lives as long as that.
    """

    response_id: RequestId
    model: str
    created_at: int
    ttl_s: int
    assistant_message_id: str
    tenant: str = DEFAULT_TENANT
    user: str = ""
    abandonment: Abandonment = Abandonment.ABORT
    fingerprint: str = ""
    generates: bool = True
    session_id: str | None = None
    parent_id: str = ""
    request: dict[str, Any] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    status: ResponseStatus = ResponseStatus.QUEUED
    output_text: str = ""
    output_token_ids: tuple[int, ...] = ()
    outcome: Outcome | None = None
    last_sequence: int | None = None

    @property
    def owner(self) -> Owner:
        return Owner(self.tenant, self.user)

    def to_fields(self) -> list[Value]:
        """Return what is stored, all but the id, which is part of the key."""
        return flatten(
            {
                "model": self.model,
                "created_at": self.created_at,
                "ttl_s": self.ttl_s,
                "assistant_message_id": self.assistant_message_id,
                "tenant": self.tenant,
                "user": self.user,
                "abandonment": self.abandonment.value,
                "fingerprint": self.fingerprint,
                "generates": int(self.generates),
                "session_id": self.session_id or "",
                "parent_id": self.parent_id,
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
            tenant=fields["tenant"],
            user=fields["user"],
            abandonment=Abandonment(fields["abandonment"]),
            fingerprint=fields["fingerprint"],
            generates=fields["generates"] == "1",
            session_id=fields["session_id"] or None,
            parent_id=fields["parent_id"],
            request=orjson.loads(fields["request"]),
            messages=tuple(
                Message.from_fields(pairs(flat)) for flat in orjson.loads(fields["messages"])
            ),
            status=ResponseStatus(fields["status"]),
            output_text=fields["output_text"],
            output_token_ids=unpack_token_ids(fields["output_token_ids"]),
            outcome=load_outcome(fields["outcome"]),
            last_sequence=int(fields["last_sequence"]) if "last_sequence" in fields else None,
        )


class Responses:
    """The response objects of the store.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def get(self, response_id: RequestId) -> ResponseRecord | None:
        key = self._partitions.of_id(response_id).key(keys.RESPONSE + response_id)
        fields = pairs(await self._redis.call("HGETALL", key))
        return ResponseRecord.from_fields(response_id, fields) if fields else None

    async def owner(self, response_id: RequestId) -> Owner | None:
        """Return whose a response is, None when there is none."""
        key = self._partitions.of_id(response_id).key(keys.RESPONSE + response_id)
        tenant, user = await self._redis.call("HMGET", key, "tenant", "user")
        return None if tenant is None else Owner(tenant, user)

    async def delete(self, response_id: RequestId) -> bool:
        """Forget a response; False when there is none.

        A request in flight is not stopped by this: cancel it next. Its log goes with it, or some
        time after the answer has ended.
        """
        root = self._partitions.of_id(response_id).root
        return bool(await self._redis.run(scripts.DELETE_RESPONSE, root, response_id))
