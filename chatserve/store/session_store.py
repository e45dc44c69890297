"""Sessions in the store: created, read, listed, changed and deleted.

Owns how they are stored. Messages are only ever appended: by `create` and `append` here, by
`RequestQueue.enqueue` for the user's side of a turn, and by the script that ends an answer for the
model's side. A session belongs to an owner for good, and is listed among theirs; that nobody else
gets to see it is the gateway's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chatserve.engine.api import RequestId
from chatserve.error_codes import ErrorCode
from chatserve.errors import Conflict, NotFound
from chatserve.identity import Owner
from chatserve.store import keys, scripts
from chatserve.store.codec import Command, Value, counted, dump_json, flatten, pairs
from chatserve.store.keys import Partitions
from chatserve.store.redis_client import RedisClient
from chatserve.store.sessions import (
    Deleted,
    Message,
    MessagePlace,
    NewSession,
    Outline,
    Session,
    SessionChange,
    TitleSource,
    in_a_row,
    turn_error,
)
from chatserve.store.streams import parse_entries

_UNTITLED = NewSession()


@dataclass(frozen=True, slots=True)
class ListPlace:
    """A place in an owner's list: a session and when it was used last, as it was read."""

    updated_ms: int
    session_id: str


class Sessions:
    """The conversations of the store.

    Owns: nothing in memory.
    Used from: the event loop.
    """

    def __init__(self, redis: RedisClient, partitions: Partitions) -> None:
        self._redis = redis
        self._partitions = partitions

    async def create(
        self,
        owner: Owner,
        session_id: str,
        new: NewSession = _UNTITLED,
        messages: Sequence[Message] = (),
        *,
        is_tree: bool = False,
        is_hidden: bool = False,
    ) -> Session:
        """Store a new session; one that exists under this id is returned as it is.

        Args:
            owner: Whose it is.
            session_id: An id of the owner's tenant.
            new: What it begins with.
            messages: Its first messages, each following the one before.
            is_tree: The messages name their parents, which come before them, and follow those.
            is_hidden: It is not listed, and runs out within minutes unless `show` comes.
        """
        creation = _creation(owner, session_id, new) | ({"hidden": 1} if is_hidden else {})
        arguments: list[Value] = [dump_json(creation)]
        for message in messages if is_tree else in_a_row(messages):
            arguments += counted(message.to_fields())
        reply = await self._redis.run(scripts.CREATE_SESSION, self._root(session_id), *arguments)
        if reply not in ("created", "exists"):
            raise turn_error(reply, session_id, None)
        session = await self.get(session_id)
        if session is None:
            raise NotFound(f"session {session_id!r} was deleted while it was created")
        return session

    async def show(self, owner: Owner, session_ids: Sequence[str]) -> None:
        """List the hidden sessions of an owner and keep them, all of them or none.

        Raises:
            NotFound: One of them has run out.
            Conflict: The owner would have more than one may have.
        """
        root = self._root(session_ids[0])
        reply = await self._redis.run(scripts.SHOW_SESSIONS, root, *owner, *session_ids)
        if reply != "shown":
            raise turn_error(reply, session_ids[0], None)

    async def get(self, session_id: str) -> Session | None:
        return (await self._get_many([session_id]))[0]

    async def outline(self, session_id: str) -> Outline:
        """Return which messages there are; none for a session that does not exist."""
        tree = pairs(await self._redis.call("HGETALL", self._key(keys.TREE + session_id)))
        return Outline({name: MessagePlace.parse(packed) for name, packed in tree.items()})

    async def read(
        self, session_id: str, outline: Outline, message_ids: Sequence[str]
    ) -> Sequence[Message]:
        """Return messages as they stand in an outline, in one go; those deleted since are left out.

        How many a caller asks for at once is its own business, and the outline tells their size.
        """
        key = self._key(keys.MESSAGES + session_id)
        entry_ids = [outline.entry_id(each) for each in message_ids]
        replies = await self._redis.call_many([("XRANGE", key, each, each) for each in entry_ids])
        return [
            outline.in_place(Message.from_fields(entry.fields))
            for reply in replies
            for entry in parse_entries(reply)
        ]

    async def newest_messages(
        self, session_id: str, limit: int, before: str | None = None
    ) -> list[tuple[str, Message]]:
        """Return up to `limit` messages with their places, the one written last first.

        `before` is the place of the last message that was read so far.
        """
        key = self._key(keys.MESSAGES + session_id)
        end = f"({before}" if before else "+"
        reply = await self._redis.call("XREVRANGE", key, end, "-", "COUNT", limit)
        return [
            (entry.entry_id, Message.from_fields(entry.fields)) for entry in parse_entries(reply)
        ]

    async def list(
        self,
        owner: Owner,
        limit: int,
        before: str | None = None,
        *,
        archived: bool = False,
        pinned: bool = False,
    ) -> list[Session]:
        """Return up to `limit` sessions of an owner, the most recently used first.

        Args:
            owner: Whose sessions.
            limit: How many at most.
            before: The last session of the page before this one.
            archived: Whether to list the archived ones, which are not among the others.
            pinned: Whether to list, of those that are not archived, only the pinned ones.

        Raises:
            NotFound: `before` is not in the list (any more), so there is no place to go on from.
        """
        assert limit > 0, f"a page of {limit} sessions"
        assert not (archived and pinned), "archived sessions are not listed as pinned"
        key = (
            self._list_key(owner, keys.PINNED)
            if pinned
            else self._main_list(owner, archived=archived)
        )
        first = 0
        if before is not None:
            rank = await self._redis.call("ZREVRANK", key, before)
            if rank is None:
                message = f"there is no session {before!r} to list from"
                raise NotFound(message, code=ErrorCode.CONVERSATION_NOT_FOUND, param="before")
            first = rank + 1
        session_ids = await self._redis.call("ZREVRANGE", key, first, first + limit - 1)
        return [found for found in await self._get_many(session_ids) if found is not None]

    async def places(
        self, owner: Owner, limit: int, after: ListPlace | None = None, *, archived: bool = False
    ) -> Sequence[ListPlace]:
        """Return the next places of an owner's list, going on whatever has moved meanwhile.

        A session that was used since `after` was read is not seen again further down; all that
        were not are seen exactly once.
        """
        key = self._main_list(owner, archived=archived)
        first = await self._rank_after(key, after) if after else 0
        flat = await self._redis.call("ZREVRANGE", key, first, first + limit - 1, "WITHSCORES")
        return [
            ListPlace(int(float(score)), session_id)
            for session_id, score in zip(flat[::2], flat[1::2], strict=True)
        ]

    async def update(self, session_id: str, change: SessionChange) -> Session | None:
        """Set the given fields and no other; None when there is no such session.

        Raises:
            Conflict: The session is no longer in the version that the change expects.
        """
        fields = _changed_fields(change)
        expected = "" if change.version is None else change.version
        outcome = await self._redis.run(
            scripts.UPDATE_SESSION, self._root(session_id), session_id, expected, "", *fields
        )
        if outcome == "version_conflict":
            message = f"conversation {session_id!r} is no longer in version {change.version}"
            raise Conflict(message, code=ErrorCode.VERSION_CONFLICT, param="chatserve:version")
        return await self.get(session_id)

    async def suggest_title(self, session_id: str, title: str) -> bool:
        """Set a title that the model made, unless the session has a better one or is gone."""
        fields = flatten({"title": title, "title_source": TitleSource.MODEL.value})
        outcome = await self._redis.run(
            scripts.UPDATE_SESSION,
            self._root(session_id),
            session_id,
            "",
            TitleSource.WORDS.value,
            *fields,
        )
        return bool(outcome == "changed")

    async def append(
        self, session_id: str, messages: Sequence[Message], parent_id: str | None = None
    ) -> None:
        """Append messages in a row, below `parent_id` or below the message written last.

        Raises:
            NotFound: There is no such session, or no such parent in it.
            Conflict: No parent is named and an answer is in flight, which would be in the way.
        """
        target = {"session_id": session_id}
        if parent_id is not None:
            target["parent_id"] = parent_id
        arguments: list[Value] = [dump_json(target)]
        for message in in_a_row(messages):
            arguments += counted(message.to_fields())
        refusal = await self._redis.run(scripts.APPEND_MESSAGES, self._root(session_id), *arguments)
        if refusal:
            raise turn_error(refusal, session_id, parent_id)

    async def delete_message(self, session_id: str, message_id: str) -> bool:
        """Delete what a message says; where it stood remains known. False when it is not there."""
        root = self._root(session_id)
        return bool(await self._redis.run(scripts.DELETE_MESSAGE, root, session_id, message_id))

    async def delete(self, session_id: str) -> Deleted | None:
        """Delete a session, its messages and the responses that made them.

        Returns None when there is no such session. An answer in flight goes on; it is the caller's
        to stop.
        """
        active = await self._redis.run(scripts.DELETE_SESSION, self._root(session_id), session_id)
        return None if active is None else Deleted(tuple(RequestId(each) for each in active))

    def _root(self, session_id: str) -> str:
        return self._partitions.of_id(session_id).root

    def _key(self, kind_and_id: str) -> str:
        """Return the key of something that a session has, from its kind and the session's id."""
        return self._partitions.of_id(kind_and_id.split(":", 1)[1]).key(kind_and_id)

    def _main_list(self, owner: Owner, *, archived: bool) -> str:
        return self._list_key(owner, keys.ARCHIVED if archived else keys.SESSIONS)

    def _list_key(self, owner: Owner, kind: str) -> str:
        return self._partitions.of_tenant(owner.tenant).key(kind + keys.owner(*owner))

    async def _rank_after(self, key: str, place: ListPlace) -> int:
        score, rank, num_newer = await self._redis.call_many(
            [
                ("ZSCORE", key, place.session_id),
                ("ZREVRANK", key, place.session_id),
                ("ZCOUNT", key, f"({place.updated_ms}", "+inf"),
            ]
        )
        stayed = score is not None and int(float(score)) == place.updated_ms
        return int(rank) + 1 if stayed else int(num_newer)

    async def _get_many(self, session_ids: Sequence[str]) -> Sequence[Session | None]:
        commands: list[Command] = []
        for session_id in session_ids:
            commands.append(("HGETALL", self._key(keys.SESSION + session_id)))
            commands.append(("XLEN", self._key(keys.MESSAGES + session_id)))
        replies = await self._redis.call_many(commands)
        return [
            Session.from_fields(session_id, pairs(flat), num_messages) if flat else None
            for session_id, flat, num_messages in zip(
                session_ids, replies[::2], replies[1::2], strict=True
            )
        ]


def _creation(owner: Owner, session_id: str, new: NewSession) -> dict[str, Value]:
    options: dict[str, Value] = {
        "id": session_id,
        "tenant": owner.tenant,
        "user": owner.user,
        "title": new.title,
        "title_source": new.title_source.value,
        "metadata": dump_json(new.metadata or {}),
        "archived": str(int(new.is_archived)),
        "pinned": str(int(new.is_pinned)),
    }
    if new.created_at is not None:
        options["created_ms"] = new.created_at * 1000
    if new.updated_at is not None:
        options["updated_ms"] = new.updated_at * 1000
    return options


def _changed_fields(change: SessionChange) -> list[Value]:
    fields: dict[str, Value] = {}
    if change.title is not None:
        fields |= {"title": change.title, "title_source": TitleSource.USER.value}
    if change.metadata is not None:
        fields["metadata"] = dump_json(change.metadata)
    if change.is_archived is not None:
        fields["archived"] = int(change.is_archived)
    if change.is_pinned is not None:
        fields["pinned"] = int(change.is_pinned)
    return flatten(fields)
