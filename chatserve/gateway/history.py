"""What was said before: the messages that a new response builds on.

Owns the three ways in which a create names its past (nothing, a session, an earlier response) and
who may name what. Knows no template and starts nothing.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from chatserve.engine.api import RequestId
from chatserve.error_codes import ErrorCode
from chatserve.errors import Conflict, InvalidRequest, NotFound
from chatserve.identity import Identity
from chatserve.protocol.errors import describe
from chatserve.protocol.responses import ResponseFields
from chatserve.store.connection import Store
from chatserve.store.responses import ResponseRecord
from chatserve.store.sessions import Message, MessageStatus, Session, turn_error


@dataclass(frozen=True, slots=True)
class History:
    """The past of a response, and the session that it continues, if any."""

    messages: tuple[Message, ...] = ()
    session_id: str | None = None


async def read_history(
    store: Store, fields: ResponseFields, identity: Identity, own: Container[str]
) -> History:
    """Return what a create builds on.

    Args:
        store: Where sessions and responses are.
        fields: The create.
        identity: Who asks.
        own: The unstored responses of this connection, which only it may build on.

    Raises:
        NotFound: There is no such session or response.
        Conflict: The response has not ended yet, or what is to be continued.
        InvalidRequest: What is to be continued is no answer that was cut, or what is to be
            answered was said by nobody.
    """
    if fields.conversation is not None:
        return await _session_history(store, fields, identity)
    if fields.previous_response_id is not None:
        return History(await _lineage(store, fields.previous_response_id, identity, own))
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


async def input_messages(store: Store, record: ResponseRecord) -> Sequence[Message]:
    """Return the whole conversation that a response answers, oldest first."""
    if record.session_id is None:
        return record.messages
    transcript = await store.sessions.transcript(record.session_id)
    return transcript.up_to(record.parent_id) if record.parent_id in transcript.tree else ()


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


async def _session_history(store: Store, fields: ResponseFields, identity: Identity) -> History:
    session_id = fields.conversation or ""
    session = await owned_session(store, identity, session_id)
    transcript = await store.sessions.transcript(session_id)
    messages = transcript.before_turn(fields.parent_id)
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


async def _lineage(
    store: Store, response_id: str, identity: Identity, own: Container[str]
) -> tuple[Message, ...]:
    record = await find_response(store, response_id, identity, own)
    if record is None:
        raise _no_previous(response_id)
    if record.outcome is None:
        raise Conflict(
            f"response {describe(response_id)} has not ended yet",
            code=ErrorCode.PREVIOUS_RESPONSE_IN_FLIGHT,
            param="previous_response_id",
        )
    if record.session_id is not None:
        return await _session_lineage(store, record.session_id, record)
    answer = (_answer_message(record),) if record.generates else ()
    return (*record.messages, *answer)


async def _session_lineage(
    store: Store, session_id: str, record: ResponseRecord
) -> tuple[Message, ...]:
    """Return a session's messages up to one answer; the session keeps them, not the response."""
    transcript = await store.sessions.transcript(session_id)
    if record.assistant_message_id not in transcript.tree:
        raise _no_previous(record.response_id)
    return tuple(transcript.up_to(record.assistant_message_id))


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
