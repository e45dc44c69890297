"""The endpoints of a conversation's messages: append, list, read, delete.

Owns which of them a list shows: the branch that was written to last, the one through a message that
the caller names, or all.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest, NotFound
from chatserve.gateway.conversation_reading import OpenConversation
from chatserve.gateway.conversations import conversation_object, session_of
from chatserve.gateway.operations import LIMIT, ORDER, Operation, flag, text
from chatserve.gateway.paging import PageQuery, page_object
from chatserve.gateway.query import flag_of
from chatserve.gateway.replies import ignored_header, json_response, take_body
from chatserve.gateway.responses import to_messages
from chatserve.gateway.services import Services
from chatserve.protocol.conversation_objects import (
    ConversationObject,
    ItemList,
    ItemObject,
    item_content,
    item_ending,
)
from chatserve.protocol.conversations import NewItems
from chatserve.protocol.errors import describe
from chatserve.store.sessions import Message, MessageStatus, Outline, Session

_PATH = "/v1/conversations/{conversation_id}/items"
_ITEM = f"{_PATH}/{{item_id}}"


async def create_items(request: Request) -> Response:
    """Serve `POST /v1/conversations/{id}/items`."""
    services: Services = request.app.state.services
    _refuse_include(request)
    new, ignored = await take_body(request, NewItems)
    session = await session_of(request)
    messages = to_messages(new.items)
    await services.store.sessions.append(session.session_id, messages, new.parent_id)
    conversation = await _opened(services, session)
    new_ids = [message.message_id for message in messages]
    kept = [message_id for message_id in new_ids if message_id in conversation.outline.tree]
    stored = [item_object(message) for message in await conversation.messages(kept)]
    return json_response(ItemList.whole(stored).to_wire(), headers=ignored_header(ignored))


async def list_items(request: Request) -> Response:
    """Serve `GET /v1/conversations/{id}/items`."""
    services: Services = request.app.state.services
    _refuse_include(request)
    session = await session_of(request)
    conversation = await _opened(services, session)
    shown = _shown(request, conversation.outline)
    messages, has_more = await conversation.page(shown, PageQuery.of(request))
    items = [item_object(message).to_wire() for message in messages]
    return json_response(page_object(items, has_more=has_more))


async def get_item(request: Request) -> Response:
    """Serve `GET /v1/conversations/{id}/items/{item}`."""
    services: Services = request.app.state.services
    _refuse_include(request)
    session = await session_of(request)
    item_id: str = request.path_params["item_id"]
    conversation = await _opened(services, session)
    found = [item_id] if item_id in conversation.outline.tree else []
    for message in await conversation.messages(found):
        return json_response(item_object(message).to_wire())
    raise _no_item(item_id)


async def delete_item(request: Request) -> Response:
    """Serve `DELETE /v1/conversations/{id}/items/{item}`; what follows it stays, or goes too."""
    services: Services = request.app.state.services
    session = await session_of(request)
    item_id: str = request.path_params["item_id"]
    if flag_of(request, "following"):
        await _delete_following(services, session, item_id)
    if not await services.store.sessions.delete_message(session.session_id, item_id):
        raise _no_item(item_id)
    return json_response(conversation_object(session).to_wire())


async def _delete_following(services: Services, session: Session, item_id: str) -> None:
    """Delete all messages after one, the last first: what breaks off leaves whole beginnings."""
    outline = (await _opened(services, session)).outline
    if item_id not in outline.tree:
        raise _no_item(item_id)
    for each in reversed(outline.tree.below(item_id)):
        await services.store.sessions.delete_message(session.session_id, each)


def item_object(message: Message) -> ItemObject:
    """Return a message as clients see it."""
    status = "completed" if message.status is MessageStatus.COMPLETED else "incomplete"
    members: dict[str, Any] = {
        "id": message.message_id,
        "type": "message",
        "role": message.role,
        "status": status,
        "content": item_content(message.role, message.content),
        "parent_id": message.parent_id,
        "response_id": message.response_id,
    }
    if message.outcome is not None:
        members |= item_ending(message.outcome)
    if message.continues:
        members["continues"] = True
    return ItemObject.model_validate(members)


async def _opened(services: Services, session: Session) -> OpenConversation:
    return await services.conversations.open(session.owner, session.session_id)


def _shown(request: Request, outline: Outline) -> list[str]:
    """Return the messages that the query asks for, in the order of reading."""
    through = request.query_params.get("branch")
    if flag_of(request, "tree"):
        if through is not None:
            raise InvalidRequest("tree and branch exclude each other", param="tree")
        return outline.all()
    if through is not None and through not in outline.tree:
        raise InvalidRequest(f"branch: there is no item {describe(through)}", param="branch")
    return outline.branch(through)


def _refuse_include(request: Request) -> None:
    if "include" in request.query_params or "include[]" in request.query_params:
        raise InvalidRequest(
            "include: there is nothing to include", code=ErrorCode.UNSUPPORTED, param="include"
        )


def _no_item(item_id: str) -> NotFound:
    return NotFound(
        f"the conversation has no item {describe(item_id)}",
        code=ErrorCode.MESSAGE_NOT_FOUND,
        param="item_id",
    )


OPERATIONS = (
    Operation("POST", _PATH, "Append messages", body=NewItems, reply=ItemList, errors=(409,)),
    Operation(
        "GET",
        _PATH,
        "List the messages of one branch, or all",
        query=(
            LIMIT,
            ORDER,
            text("after"),
            text("branch"),
            flag("tree"),
        ),
        reply=ItemList,
    ),
    Operation("GET", _ITEM, "Read a message", reply=ItemObject, errors=(400,)),
    Operation(
        "DELETE",
        _ITEM,
        "Delete what a message says, or all that follows it too",
        query=(flag("following"),),
        reply=ConversationObject,
    ),
)


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        Route(_PATH, create_items, methods=["POST"]),
        Route(_PATH, list_items, methods=["GET"]),
        Route(_ITEM, get_item, methods=["GET"]),
        Route(_ITEM, delete_item, methods=["DELETE"]),
    ]
