"""What was said before: the messages that a new response builds on.

Owns the three ways in which a create names its past (nothing, a session, an earlier response) and
who may name what. Knows no template and starts nothing.
"""

from collections.abc import Container
from dataclasses import dataclass

from chatserve.engine.api import RequestId
from chatserve.errors import Conflict, NotFound
from chatserve.protocol.codes import ErrorCode
from chatserve.protocol.errors import describe
from chatserve.protocol.responses import ResponseFields
from chatserve.store.connection import Store
from chatserve.store.responses import ResponseRecord
from chatserve.store.sessions import Message


@dataclass(frozen=True, slots=True)
class History:
    """The past of a response, and the session that it continues, if any."""

    messages: tuple[Message, ...] = ()
    session_id: str | None = None


async def read_history(store: Store, fields: ResponseFields, own: Container[str]) -> History:
    """Return what a create builds on.

    Args:
        store: Where sessions and responses are.
        fields: The create.
        own: The unstored responses of this connection, which only it may build on.

    Raises:
        NotFound: There is no such session or response.
        Conflict: The response has not ended yet.
    """
    if fields.conversation is not None:
        return await _session_history(store, fields.conversation)
    if fields.previous_response_id is not None:
        return History(await _lineage(store, fields.previous_response_id, own))
    return History()


async def find_response(
    store: Store, response_id: str, own: Container[str]
) -> ResponseRecord | None:
    """Return a response that this connection may read; None if there is none."""
    record = await store.responses.get(RequestId(response_id))
    if record is None or not (record.request.get("store") or response_id in own):
        return None
    return record


async def _session_history(store: Store, session_id: str) -> History:
    if await store.sessions.get(session_id) is None:
        raise NotFound(
            f"there is no conversation {describe(session_id)}",
            code=ErrorCode.CONVERSATION_NOT_FOUND,
            param="conversation",
        )
    return History(tuple(await store.sessions.messages(session_id)), session_id)


async def _lineage(store: Store, response_id: str, own: Container[str]) -> tuple[Message, ...]:
    record = await find_response(store, response_id, own)
    if record is None:
        raise _no_previous(response_id)
    if record.outcome is None:
        raise Conflict(
            f"response {describe(response_id)} has not ended yet",
            code=ErrorCode.PREVIOUS_RESPONSE_IN_FLIGHT,
            param="previous_response_id",
        )
    if record.session_id is not None:
        return await _session_lineage(store, record.session_id, response_id)
    return (*record.messages, _answer_message(record))


async def _session_lineage(store: Store, session_id: str, response_id: str) -> tuple[Message, ...]:
    """Return a session's messages up to one answer; the session keeps them, not the response."""
    messages = await store.sessions.messages(session_id)
    for count, message in enumerate(messages, start=1):
        if message.response_id == response_id:
            return tuple(messages[:count])
    raise _no_previous(response_id)


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
