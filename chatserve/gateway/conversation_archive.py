"""The endpoints that export and import conversations.

Owns how a document becomes sessions: whole or not at all, under new ids, with the tree kept, and
without those that are there already. An export is streamed, a piece of a conversation in memory at
a time.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from chatserve.error_codes import ErrorCode
from chatserve.errors import ClientError, StoreError, TooManyInFlight, Unauthenticated
from chatserve.gateway.access import while_access_lasts
from chatserve.gateway.archived_messages import archived_item, is_there, new_messages
from chatserve.gateway.conversation_reading import ConversationReading
from chatserve.gateway.conversations import session_of
from chatserve.gateway.identity import identity_of
from chatserve.gateway.ids import new_id
from chatserve.gateway.operations import Operation
from chatserve.gateway.replies import json_response, read_body
from chatserve.gateway.services import Services
from chatserve.identity import Owner
from chatserve.protocol.conversation_archive import (
    ArchivedConversation,
    ConversationArchive,
    Imported,
    archive_head,
    parse_archive,
)
from chatserve.store.session_store import ListPlace, Sessions
from chatserve.store.sessions import NewSession, Session, TitleSource

_PATH = "/v1/chatserve/conversations"
_PAGE = 50
_MAX_STORING = 4
_CLOSED = b"]}"

MAX_IMPORT_BYTES = 16 * 2**20
"""The largest document; larger ones come in parts, as its conversations stand for themselves."""


class Export:
    """`GET …/conversations/{id}/export`, and that of all of the caller's, archived ones too.

    Owns: nothing beyond its values.
    Used from: the event loop.
    """

    def __init__(self, sessions_of: Callable[[Request], Awaitable[AsyncIterator[Session]]]) -> None:
        """`sessions_of` returns what a request asks for, or raises NotFound."""
        self._sessions_of = sessions_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        services: Services = request.app.state.services
        sessions = await self._sessions_of(request)
        # Whoever loses access in the middle gets a body that breaks off, which no reader takes for
        # a whole document.
        with suppress(Unauthenticated):
            async with while_access_lasts(request):
                await _export(services, sessions)(scope, receive, send)


async def _one(request: Request) -> AsyncIterator[Session]:
    return _only(await session_of(request))


async def _all_of_caller(request: Request) -> AsyncIterator[Session]:
    services: Services = request.app.state.services
    return _all(services.store.sessions, identity_of(request).owner)


class ImportConversations:
    """`POST /v1/chatserve/conversations/import`.

    A document is large, and so is what is made of it: each user imports one at a time, and only a
    few users at once. Those count from when their documents are there, as one may take its time.

    Owns: who imports, and how many documents are being stored.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self._importing: set[Owner] = set()
        self._num_storing = 0

    async def serve(self, request: Request) -> Response:
        """Store all conversations of a document, or none."""
        owner = identity_of(request).owner
        if owner in self._importing:
            raise _in_progress()
        self._importing.add(owner)
        try:
            raw = await read_body(request, MAX_IMPORT_BYTES)
            with self._storing():
                async with while_access_lasts(request):
                    return await _import(request, owner, raw)
        finally:
            self._importing.discard(owner)

    @contextmanager
    def _storing(self) -> Iterator[None]:
        if self._num_storing >= _MAX_STORING:
            raise _in_progress()
        self._num_storing += 1
        try:
            yield
        finally:
            self._num_storing -= 1


def _in_progress() -> TooManyInFlight:
    return TooManyInFlight(
        "an import is under way: try again when it has ended", code=ErrorCode.IMPORT_IN_PROGRESS
    )


async def _import(request: Request, owner: Owner, raw: bytes) -> Response:
    services: Services = request.app.state.services
    archive = await asyncio.to_thread(parse_archive, raw)
    existing_ids = await _existing(services, owner, archive)
    added = [each for each in archive.conversations if each.id not in existing_ids]
    session_ids = [new_id("conv_", owner.tenant) for _ in added]
    # Hidden until all are there: what a kill or a cancellation leaves of them runs out by itself.
    try:
        for session_id, archived in zip(session_ids, added, strict=True):
            await services.store.sessions.create(
                owner,
                session_id,
                _new_session(archived),
                new_messages(archived),
                is_tree=True,
                is_hidden=True,
            )
        if session_ids:
            await services.store.sessions.show(owner, session_ids)
    except (ClientError, StoreError):
        await _forget(services.store.sessions, session_ids)
        raise
    imported = Imported(
        object="chatserve.import",
        conversation_ids=session_ids,
        num_items=sum(len(archived.items) for archived in added),
        existing_conversation_ids=existing_ids,
    )
    return json_response(imported.model_dump())


async def _existing(services: Services, owner: Owner, archive: ConversationArchive) -> list[str]:
    """Return which of a document's conversations are there already, by their ids.

    An id that stands there twice names two conversations, and not one of the store.
    """
    counts = Counter(archived.id for archived in archive.conversations)
    return [
        archived.id
        for archived in archive.conversations
        if counts[archived.id] == 1
        and await is_there(services.store.sessions, services.conversations, owner, archived)
    ]


def _export(services: Services, sessions: AsyncIterator[Session]) -> Response:
    document = _document(services.conversations, sessions)
    return StreamingResponse(document, media_type="application/json")


async def _document(
    conversations: ConversationReading, sessions: AsyncIterator[Session]
) -> AsyncIterator[bytes]:
    """Yield an export in pieces that are a JSON document together."""
    yield _opened({**archive_head(), "conversations": []})
    separator = b""
    async for session in sessions:
        yield separator + _opened(_archived_head(session).model_dump())
        conversation = await conversations.open(session.owner, session.session_id)
        separator = b""
        async for piece in conversation.pieces(conversation.outline.all()):
            items = [orjson.dumps(archived_item(message).model_dump()) for message in piece]
            yield separator + b",".join(items)
            separator = b"," if items else separator
        yield _CLOSED
        separator = b","
    yield _CLOSED


def _opened(value: dict[str, object]) -> bytes:
    """Return the beginning of an object whose last member is a list that is still to come."""
    whole = orjson.dumps(value)
    assert whole.endswith(b"[" + _CLOSED), whole
    return whole.removesuffix(_CLOSED)


async def _only(session: Session) -> AsyncIterator[Session]:
    yield session


async def _all(sessions: Sessions, owner: Owner) -> AsyncIterator[Session]:
    for archived in (False, True):
        place: ListPlace | None = None
        while places := await sessions.places(owner, _PAGE, place, archived=archived):
            for place in places:
                session = await sessions.get(place.session_id)
                if session is not None:
                    yield session


def _archived_head(session: Session) -> ArchivedConversation:
    """Return a conversation without its items."""
    return ArchivedConversation(
        id=session.session_id,
        title=session.title,
        title_source=session.title_source.value,
        created_at=session.created_at,
        updated_at=session.updated_at,
        metadata=session.metadata,
        archived=session.is_archived,
        pinned=session.is_pinned,
        items=[],
    )


def _new_session(archived: ArchivedConversation) -> NewSession:
    now = int(time.time())
    return NewSession(
        archived.title,
        TitleSource(archived.title_source),
        archived.metadata,
        is_archived=archived.archived,
        is_pinned=archived.pinned,
        created_at=min(archived.created_at, now),
        updated_at=min(archived.updated_at, now),
    )


async def _forget(sessions: Sessions, session_ids: list[str]) -> None:
    """Take back what of an import was stored, as far as the store lets us."""
    for session_id in session_ids:
        await sessions.delete(session_id)


OPERATIONS = (
    Operation(
        "GET",
        f"{_PATH}/export",
        "Export all conversations",
        reply=ConversationArchive,
    ),
    Operation(
        "POST",
        f"{_PATH}/import",
        "Import conversations under new ids, all that are not there already or none",
        body=ConversationArchive,
        reply=Imported,
    ),
    Operation(
        "GET",
        f"{_PATH}/{{conversation_id}}/export",
        "Export a conversation",
        reply=ConversationArchive,
    ),
)


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        Route(f"{_PATH}/export", Export(_all_of_caller), methods=["GET"]),
        Route(f"{_PATH}/import", ImportConversations().serve, methods=["POST"]),
        Route(f"{_PATH}/{{conversation_id}}/export", Export(_one), methods=["GET"]),
    ]
