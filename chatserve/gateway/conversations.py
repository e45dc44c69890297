"""The conversations endpoints: create, read, rename, list and delete sessions.

Owns the way between sessions and the wire. Turns are not made here; they come as a
`response.create` that names its conversation.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from chatserve.errors import InvalidRequest, NotFound
from chatserve.gateway.ids import new_id
from chatserve.gateway.replies import ignored_header, json_response, read_body
from chatserve.gateway.responses import to_messages
from chatserve.gateway.services import Services
from chatserve.protocol.codes import ErrorCode
from chatserve.protocol.conversations import (
    StoredItem,
    parse_conversation_change,
    parse_new_conversation,
)
from chatserve.protocol.errors import describe
from chatserve.store.sessions import Message, Session

_DEFAULT_LIMIT = 20
_MAX_LIMIT = 100


async def create_conversation(request: Request) -> Response:
    """Serve `POST /v1/conversations`."""
    services: Services = request.app.state.services
    body = await read_body(request, services.config.max_message_bytes)
    new, ignored = parse_new_conversation(body)
    session = await services.store.sessions.create(
        new_id("conv_"),
        title=new.title,
        metadata=new.metadata,
        messages=to_messages(new.items),
    )
    return json_response(_conversation_object(session), headers=ignored_header(ignored))


async def get_conversation(request: Request) -> Response:
    """Serve `GET /v1/conversations/{id}`."""
    return json_response(_conversation_object(await _session(request)))


async def update_conversation(request: Request) -> Response:
    """Serve `POST /v1/conversations/{id}`: change what the body names, and nothing else."""
    services: Services = request.app.state.services
    body = await read_body(request, services.config.max_message_bytes)
    change, ignored = parse_conversation_change(body)
    session_id = _session_id(request)
    session = await services.store.sessions.update(
        session_id, title=change.title, metadata=change.metadata
    )
    if session is None:
        raise _no_session(session_id)
    return json_response(_conversation_object(session), headers=ignored_header(ignored))


async def delete_conversation(request: Request) -> Response:
    """Serve `DELETE /v1/conversations/{id}`; an answer in flight is cancelled."""
    services: Services = request.app.state.services
    session = await _session(request)
    deleted = await services.store.sessions.delete(session.session_id)
    if deleted is not None and deleted.active_response_id is not None:
        await services.generations.cancel(deleted.active_response_id)
    return json_response(
        {"id": session.session_id, "object": "conversation.deleted", "deleted": True}
    )


async def list_items(request: Request) -> Response:
    """Serve `GET /v1/conversations/{id}/items`."""
    services: Services = request.app.state.services
    session = await _session(request)
    messages = await services.store.sessions.messages(session.session_id)
    if _order(request) == "desc":
        messages.reverse()
    page, has_more = _page(messages, request.query_params.get("after"), _limit(request))
    return json_response(
        {
            "object": "list",
            "data": [_item(message).to_wire() for message in page],
            "first_id": page[0].message_id if page else "",
            "last_id": page[-1].message_id if page else "",
            "has_more": has_more,
        }
    )


async def list_conversations(request: Request) -> Response:
    """Serve `GET /v1/chatserve/conversations`: the most recently used first."""
    services: Services = request.app.state.services
    limit = _limit(request)
    before = request.query_params.get("before")
    sessions = await services.store.sessions.list(limit + 1, before)
    page = sessions[:limit]
    return json_response(
        {
            "object": "list",
            "data": [_conversation_object(session) for session in page],
            "has_more": len(sessions) > limit,
        }
    )


def _conversation_object(session: Session) -> dict[str, Any]:
    return {
        "id": session.session_id,
        "object": "conversation",
        "created_at": session.created_at,
        "metadata": session.metadata,
        "title": session.title,
        "updated_at": session.updated_at,
        "active_response_id": session.active_response_id,
    }


def _item(message: Message) -> StoredItem:
    return StoredItem(
        item_id=message.message_id,
        role=message.role,
        text=message.content,
        response_id=message.response_id,
        outcome=message.outcome,
    )


def _page(messages: list[Message], after: str | None, limit: int) -> tuple[list[Message], bool]:
    """Return the messages after an id, and whether there are more."""
    first = 0
    if after is not None:
        ids = [message.message_id for message in messages]
        if after not in ids:
            raise InvalidRequest(f"after: there is no item {describe(after)}", param="after")
        first = ids.index(after) + 1
    return messages[first : first + limit], len(messages) > first + limit


async def _session(request: Request) -> Session:
    services: Services = request.app.state.services
    session_id = _session_id(request)
    session = await services.store.sessions.get(session_id)
    if session is None:
        raise _no_session(session_id)
    return session


def _session_id(request: Request) -> str:
    session_id: str = request.path_params["conversation_id"]
    return session_id


def _no_session(session_id: str) -> NotFound:
    return NotFound(
        f"there is no conversation {describe(session_id)}",
        code=ErrorCode.CONVERSATION_NOT_FOUND,
        param="conversation",
    )


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(_DEFAULT_LIMIT))
    # The length comes first: Python refuses to make a number of thousands of digits.
    is_number = len(text) <= 9 and text.isascii() and text.isdigit()
    if not is_number or not 1 <= int(text) <= _MAX_LIMIT:
        raise InvalidRequest(
            f"limit: must be a number from 1 to {_MAX_LIMIT}, received {describe(text)}",
            param="limit",
        )
    return int(text)


def _order(request: Request) -> str:
    order = request.query_params.get("order", "desc")
    if order not in ("asc", "desc"):
        raise InvalidRequest(
            f"order: must be asc or desc, received {describe(order)}", param="order"
        )
    return order
