"""The endpoints of one conversation: create, read, change, delete.

Owns the way between sessions and the wire, and the rule that a session is there for its owner only:
whoever else asks gets what they would get if it did not exist. Turns are not made here; they come
as a `response.create` that names its conversation.
"""

from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.errors import InvalidRequest
from chatserve.gateway.history import no_session, owned_session
from chatserve.gateway.identity import identity_of
from chatserve.gateway.ids import new_id
from chatserve.gateway.operations import Operation
from chatserve.gateway.replies import ignored_header, json_response, take_body
from chatserve.gateway.responses import to_messages
from chatserve.gateway.services import Services
from chatserve.protocol.conversation_objects import ConversationDeleted, ConversationObject
from chatserve.protocol.conversations import (
    ArchiveState,
    ConversationChange,
    NewConversation,
    NewTitle,
)
from chatserve.protocol.errors import describe
from chatserve.store.sessions import NewSession, Session, SessionChange, TitleSource

_PATH = "/v1/conversations/{conversation_id}"
_OURS = "/v1/chatserve/conversations/{conversation_id}"
_MAX_VERSION_DIGITS = 15

M = TypeVar("M", bound=BaseModel)


async def create_conversation(request: Request) -> Response:
    """Serve `POST /v1/conversations`."""
    services: Services = request.app.state.services
    new, ignored = await take_body(request, NewConversation)
    identity = identity_of(request)
    source = TitleSource(new.title_source) if new.title else TitleSource.NOBODY
    session = await services.store.sessions.create(
        identity.owner,
        new_id("conv_", identity.tenant),
        NewSession(new.title, source, new.metadata),
        to_messages(new.items),
    )
    return _conversation(session, ignored)


async def get_conversation(request: Request) -> Response:
    """Serve `GET /v1/conversations/{id}`."""
    return _conversation(await session_of(request))


async def update_conversation(request: Request) -> Response:
    """Serve `POST /v1/conversations/{id}`: change what the body names, and nothing else."""
    change, ignored = await take_body(request, ConversationChange)
    wanted = SessionChange(
        title=change.title,
        metadata=change.metadata,
        is_archived=change.archived,
        is_pinned=change.pinned,
        version=change.version if change.version is not None else _expected_version(request),
    )
    return _conversation(await _change(request, wanted), ignored)


async def rename_conversation(request: Request) -> Response:
    """Serve `POST /v1/chatserve/conversations/{id}/title`."""
    new, ignored = await take_body(request, NewTitle)
    change = SessionChange(title=new.title, version=_expected_version(request))
    return _conversation(await _change(request, change), ignored)


async def archive_conversation(request: Request) -> Response:
    """Serve `POST /v1/chatserve/conversations/{id}/archive`."""
    state, ignored = await take_body(request, ArchiveState)
    change = SessionChange(is_archived=state.archived, version=_expected_version(request))
    return _conversation(await _change(request, change), ignored)


async def delete_conversation(request: Request) -> Response:
    """Serve `DELETE /v1/conversations/{id}`; answers in flight are cancelled."""
    services: Services = request.app.state.services
    session = await session_of(request)
    deleted = await services.store.sessions.delete(session.session_id)
    for response_id in deleted.active_response_ids if deleted else ():
        await services.generations.cancel(response_id)
    return json_response(ConversationDeleted.of(session.session_id).to_wire())


async def session_of(request: Request) -> Session:
    """Return the session that the path names, or raise NotFound; see `owned_session`."""
    services: Services = request.app.state.services
    session_id: str = request.path_params["conversation_id"]
    return await owned_session(services.store, identity_of(request), session_id)


def conversation_object(session: Session) -> ConversationObject:
    """Return a session as clients see it."""
    return ConversationObject(
        id=session.session_id,
        object="conversation",
        created_at=session.created_at,
        metadata=session.metadata,
        title=session.title,
        updated_at=session.updated_at,
        archived=session.is_archived,
        pinned=session.is_pinned,
        active_response_id=session.active_response_id,
        active_response_ids=list(session.active_response_ids),
        version=session.version,
        title_source=session.title_source.value,
    )


async def _change(request: Request, change: SessionChange) -> Session:
    services: Services = request.app.state.services
    session = await session_of(request)
    changed = await services.store.sessions.update(session.session_id, change)
    if changed is None:
        raise no_session(session.session_id)
    return changed


def _conversation(session: Session, ignored: tuple[str, ...] = ()) -> Response:
    headers = {"etag": f'"{session.version}"', **ignored_header(ignored)}
    return json_response(conversation_object(session).to_wire(), headers=headers)


def _expected_version(request: Request) -> int | None:
    """Return the version that `If-Match` names: an entity tag as this service sends it."""
    header = request.headers.get("if-match", "*")
    if header == "*":
        return None
    digits = header.removeprefix('"').removesuffix('"')
    is_tag = header == f'"{digits}"' and digits.isascii() and digits.isdigit()
    if not is_tag or len(digits) > _MAX_VERSION_DIGITS:
        raise InvalidRequest(
            f"If-Match: must be one entity tag of this conversation, received {describe(header)}",
            param="If-Match",
        )
    return int(digits)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/conversations",
        "Open a conversation",
        body=NewConversation,
        reply=ConversationObject,
    ),
    Operation("GET", _PATH, "Read a conversation", reply=ConversationObject),
    Operation(
        "POST",
        _PATH,
        "Change what the body names of a conversation",
        body=ConversationChange,
        reply=ConversationObject,
        errors=(409,),
    ),
    Operation("DELETE", _PATH, "Delete a conversation", reply=ConversationDeleted),
    Operation(
        "POST",
        f"{_OURS}/title",
        "Name a conversation",
        body=NewTitle,
        reply=ConversationObject,
        errors=(409,),
    ),
    Operation(
        "POST",
        f"{_OURS}/archive",
        "Hide a conversation from the list, or show it again",
        body=ArchiveState,
        reply=ConversationObject,
        errors=(409,),
    ),
)


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        Route("/v1/conversations", create_conversation, methods=["POST"]),
        Route(_PATH, get_conversation, methods=["GET"]),
        Route(_PATH, update_conversation, methods=["POST"]),
        Route(_PATH, delete_conversation, methods=["DELETE"]),
        Route(f"{_OURS}/title", rename_conversation, methods=["POST"]),
        Route(f"{_OURS}/archive", archive_conversation, methods=["POST"]),
    ]
