"""What was said before: the messages that a new response builds on.

Owns the three ways in which a create names its past (nothing, a session, an earlier response) and
who may name what. Knows no template and starts nothing.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from chatserve.engine.api import RequestId
from chatserve.error_codes import ErrorCode
from chatserve.errors import Conflict, InvalidRequest, NotFound
from chatserve.gateway.paging import PageQuery
from chatserve.gateway.services import Services
from chatserve.identity import Identity
from chatserve.protocol.errors import describe
from chatserve.protocol.responses import ResponseFields
from chatserve.store.connection import Store
from chatserve.store.responses import ResponseRecord
from chatserve.store.sessions import Message, MessageStatus, Session, turn_error
from chatserve.text.prompt_bound import PromptBound


@dataclass(frozen=True, slots=True)
class History:
    """The past of a response, and the session that it continues, if any."""

    messages: tuple[Message, ...] = ()
    session_id: str | None = None


async def read_history(
    services: Services,
    fields: ResponseFields,
    identity: Identity,
    own: Container[str],
    bound: PromptBound,
) -> History:
    """Return what a create builds on.

    Args:
        services: By which sessions and responses are read.
        fields: The create.
        identity: Who asks.
        own: The unstored responses of this connection, which only it may build on.
        bound: How much of a conversation a prompt may be made of.

    Raises:
        InvalidRequest: It is more than any prompt can hold.
        NotFound: There is no such session or response.
        Conflict: The response has not ended yet, or what is to be continued.
        InvalidRequest: What is to be continued is no answer that was cut, or what is to be
            answered was said by nobody.
    """
    if fields.conversation is not None:
        return await _session_history(services, fields, identity, bound)
    if fields.previous_response_id is not None:
        record = await _previous(services.store, fields.previous_response_id, identity, own)
        return History(await _lineage(services, record, bound))
    return History()


async def find_response(
    store: Store, response_id: str, identity: Identity, own: Container[str] = ()
) -> ResponseRecord | None:
    """Return a response that this caller may read; None if there is none.

    Nobody but its owner may, and one that is not stored can be read on its connection only.
    """
    record = await store.responses.get(RequestId(response_id))
    if record is None or record.owner != identity.owner:
        return None
    return record if record.request.get("store") or response_id in own else None


async def input_page(
    services: Services, record: ResponseRecord, query: PageQuery
) -> tuple[list[Message], bool]:
    """Return a page of the conversation that a response answers, and whether there is more."""
    if record.session_id is None:
        by_id = {message.message_id: message for message in record.messages}
        page, has_more = query.cut(list(by_id))
        return [by_id[each] for each in page], has_more
    conversation = await services.conversations.open(record.owner, record.session_id)
    tree = conversation.outline.tree
    message_ids = tree.path(record.parent_id) if record.parent_id in tree else []
    return await conversation.page(message_ids, query)


def no_response(response_id: str) -> NotFound:
    """Return the error of who asks for a response that is not there, or not theirs."""
    return NotFound(
        f"there is no response {describe(response_id)}",
        code=ErrorCode.RESPONSE_NOT_FOUND,
        param="response_id",
    )


async def owned_session(store: Store, identity: Identity, session_id: str) -> Session:
    """Return a session, or raise NotFound unless there is one and it is the caller's."""
    session = await store.sessions.get(session_id)
    if session is None or session.owner != identity.owner:
        raise no_session(session_id)
    return session


def no_session(session_id: str) -> NotFound:
    """Return that there is no such session, for whatever reason there is none."""
    return NotFound(
        f"there is no conversation {describe(session_id)}",
        code=ErrorCode.CONVERSATION_NOT_FOUND,
        param="conversation",
    )


async def _session_history(
    services: Services, fields: ResponseFields, identity: Identity, bound: PromptBound
) -> History:
    session_id = fields.conversation or ""
    session = await owned_session(services.store, identity, session_id)
    conversation = await services.conversations.open(identity.owner, session_id)
    message_ids = conversation.outline.before_turn(fields.parent_id)
    messages = await conversation.history(message_ids, bound)
    if fields.continues:
        _check_cut(messages[-1:], session, fields.parent_id)
    elif fields.generate and not fields.input:
        _check_said(messages[-1:])
    return History(tuple(messages), session_id)


def _check_cut(last: Sequence[Message], session: Session, parent_id: str | None) -> None:
    """Raise unless a history ends with an answer that was cut."""
    if any(
        each.role == "assistant" and each.status is not MessageStatus.COMPLETED for each in last
    ):
        return
    if parent_id is None and session.active_response_ids:
        raise turn_error("busy", session.session_id, None)
    what = f"message {describe(last[0].message_id)} is" if last else "the conversation has"
    raise InvalidRequest(
        f"chatserve:continue: {what} no answer that was cut", param="chatserve:continue"
    )


def _check_said(last: Sequence[Message]) -> None:
    """Raise unless a history ends with a message that can be answered."""
    if not any(each.role == "user" for each in last):
        what = f"message {describe(last[0].message_id)} is" if last else "the conversation has"
        raise InvalidRequest(f"input: {what} no message of a user to answer", param="input")


async def _previous(
    store: Store, response_id: str, identity: Identity, own: Container[str]
) -> ResponseRecord:
    """Return the response that a create goes on from."""
    record = await find_response(store, response_id, identity, own)
    if record is None:
        raise _no_previous(response_id)
    if record.outcome is None:
        raise Conflict(
            f"response {describe(response_id)} has not ended yet",
            code=ErrorCode.PREVIOUS_RESPONSE_IN_FLIGHT,
            param="previous_response_id",
        )
    return record


async def _lineage(
    services: Services, record: ResponseRecord, bound: PromptBound
) -> tuple[Message, ...]:
    """Return the messages up to an answer; a session keeps them for its responses."""
    if record.session_id is None:
        answer = (_answer_message(record),) if record.generates else ()
        return (*record.messages, *answer)
    conversation = await services.conversations.open(record.owner, record.session_id)
    tree = conversation.outline.tree
    if record.assistant_message_id not in tree:
        raise _no_previous(record.response_id)
    message_ids = tree.path(record.assistant_message_id)
    return tuple(await conversation.history(message_ids, bound))


def _answer_message(record: ResponseRecord) -> Message:
    return Message(
        message_id=record.assistant_message_id,
        role="assistant",
        content=record.output_text,
        created_at=record.created_at,
        response_id=record.response_id,
        token_ids=record.output_token_ids,
    )


def _no_previous(response_id: str) -> NotFound:
    return NotFound(
        f"there is no response {describe(response_id)}: send the whole input again",
        code=ErrorCode.PREVIOUS_RESPONSE_NOT_FOUND,
        param="previous_response_id",
    )
