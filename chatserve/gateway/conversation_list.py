"""The list of a user's conversations, and the branches of one.

Owns the two lists. Reading and changing one conversation is `conversations.py`.
"""

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.errors import InvalidRequest
from chatserve.gateway.conversations import conversation_object, session_of
from chatserve.gateway.identity import identity_of
from chatserve.gateway.operations import LIMIT, Operation, flag, text
from chatserve.gateway.paging import page_limit
from chatserve.gateway.query import flag_of
from chatserve.gateway.replies import json_response
from chatserve.gateway.services import Services
from chatserve.protocol.conversation_objects import (
    BranchList,
    BranchObject,
    ConversationList,
    Fork,
    excerpt_of,
)
from chatserve.store.sessions import Message, Outline

_PATH = "/v1/chatserve/conversations"


async def list_conversations(request: Request) -> Response:
    """Serve `GET /v1/chatserve/conversations`: the most recently used first."""
    services: Services = request.app.state.services
    limit = page_limit(request)
    archived, pinned = flag_of(request, "archived"), flag_of(request, "pinned")
    if archived and pinned:
        raise InvalidRequest("archived and pinned exclude each other", param="pinned")
    sessions = await services.store.sessions.list(
        identity_of(request).owner,
        limit + 1,
        request.query_params.get("before"),
        archived=archived,
        pinned=pinned,
    )
    page = ConversationList(
        object="list",
        data=[conversation_object(session) for session in sessions[:limit]],
        has_more=len(sessions) > limit,
    )
    return json_response(page.to_wire())


async def list_branches(request: Request) -> Response:
    """Serve `GET /v1/chatserve/conversations/{id}/branches`."""
    services: Services = request.app.state.services
    session = await session_of(request)
    conversation = await services.conversations.open(session.owner, session.session_id)
    outline = conversation.outline
    depths = outline.tree.depths()
    pieces = conversation.pieces(outline.tree.leaves())
    branches = BranchList(
        object="list",
        data=[_branch(outline, leaf, depths) async for piece in pieces for leaf in piece],
        forks=_forks(outline),
        has_more=False,
    )
    return json_response(branches.to_wire())


def _branch(outline: Outline, leaf: Message, depths: Mapping[str, int]) -> BranchObject:
    return BranchObject(
        item_id=leaf.message_id,
        role=leaf.role,
        excerpt=excerpt_of(leaf.content),
        created_at=leaf.created_at,
        num_items=depths[leaf.message_id],
        is_newest=leaf.message_id == outline.leaf_id,
    )


def _forks(outline: Outline) -> Sequence[Fork]:
    """Return the places where more than one message follows."""
    parents = [None, *outline.all()]
    following = ((parent, outline.tree.children(parent)) for parent in parents)
    return [
        Fork(parent_id=parent, item_ids=children)
        for parent, children in following
        if len(children) > 1
    ]


OPERATIONS = (
    Operation(
        "GET",
        _PATH,
        "List conversations, the most recently used first",
        query=(LIMIT, text("before"), flag("archived"), flag("pinned")),
        reply=ConversationList,
        errors=(404,),
    ),
    Operation(
        "GET",
        f"{_PATH}/{{conversation_id}}/branches",
        "List the branches of a conversation",
        reply=BranchList,
    ),
)


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        Route(_PATH, list_conversations, methods=["GET"]),
        Route(f"{_PATH}/{{conversation_id}}/branches", list_branches, methods=["GET"]),
    ]
