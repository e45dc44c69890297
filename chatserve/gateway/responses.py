"""From a `response.create` to a generation that is ready to start.

Owns how a create becomes a prompt, a record and, in a session, a turn; and the head of a response
object, which is made from the record so that every replay repeats it exactly. Knows no socket.
"""

import time
from collections.abc import Container, Sequence
from typing import Any

from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.gateway.admission import check_prompt, sampling_params, timeout_ms
from chatserve.gateway.generation import Draft
from chatserve.gateway.history import History, read_history
from chatserve.gateway.ids import new_id
from chatserve.gateway.services import Services
from chatserve.protocol.events import ResponseHead
from chatserve.protocol.messages import InputMessage
from chatserve.protocol.responses import ResponseFields, ResponseRequest
from chatserve.store.responses import ResponseRecord
from chatserve.store.sessions import Message, SessionTurn
from chatserve.text.chat_template import ChatMessage

# How long an unstored response can be built on; its connection is gone long before.
UNSTORED_TTL_S = 3600

_IGNORED = "ignored"


async def draft_response(
    services: Services, request: ResponseRequest, response_id: RequestId, own: Container[str]
) -> Draft:
    """Return a generation for a create. Nothing is stored yet.

    Args:
        services: Models, store and config.
        request: The validated create.
        response_id: The id that the response shall have.
        own: The unstored responses of this connection.

    Raises:
        ClientError: The create cannot be served as it is.
    """
    started_at = time.perf_counter()
    fields = request.fields
    model = await services.models.get(fields.model)
    history = await read_history(services.store, fields, own)
    new_messages = to_messages(fields.input)
    messages = services.preamble.before(_prompt_messages(fields, history, new_messages))
    prompt = await model.chat_token_ids(messages)
    check_prompt(prompt, model.card, param="input")
    sampling = sampling_params(request.sampling, model.card, prompt_len=len(prompt))
    in_session = history.session_id is not None
    record = ResponseRecord(
        response_id=response_id,
        model=model.card.name,
        created_at=int(time.time()),
        ttl_s=services.config.response_ttl_s if fields.store else UNSTORED_TTL_S,
        # Derived, so that a create that is sent twice at once is one answer in every detail.
        assistant_message_id=f"msg_{response_id.removeprefix('resp_')}",
        session_id=history.session_id,
        request={**_echo(fields, sampling), _IGNORED: list(request.ignored)},
        messages=() if in_session else (*history.messages, *new_messages),
    )
    return Draft(
        GenerationRequest(
            response_id,
            model.card.name,
            prompt,
            sampling,
            priority=request.queue.priority,
            timeout_ms=timeout_ms(request.queue.timeout, services.config.request_timeout_s),
        ),
        record,
        _turn(history, new_messages),
        started_at,
    )


def head_of(record: ResponseRecord) -> ResponseHead:
    """Return what the events of a response repeat of its request."""
    echo = {name: value for name, value in record.request.items() if name != _IGNORED}
    return ResponseHead(
        response_id=record.response_id,
        message_id=record.assistant_message_id,
        model=record.model,
        created_at=record.created_at,
        echo=echo,
        ignored=tuple(record.request.get(_IGNORED, ())),
    )


def to_messages(items: Sequence[InputMessage]) -> tuple[Message, ...]:
    """Return messages as they are stored."""
    now = int(time.time())
    return tuple(Message(new_id("msg_"), item.role, item.text, now) for item in items)


def _prompt_messages(
    fields: ResponseFields, history: History, new_messages: Sequence[Message]
) -> list[ChatMessage]:
    instructions = [ChatMessage("system", fields.instructions)] if fields.instructions else []
    said = [
        ChatMessage(message.role, message.content, message.token_ids)
        for message in (*history.messages, *new_messages)
    ]
    return instructions + said


def _turn(history: History, new_messages: tuple[Message, ...]) -> SessionTurn | None:
    if history.session_id is None:
        return None
    return SessionTurn(history.session_id, new_messages, len(history.messages))


def _echo(fields: ResponseFields, sampling: SamplingParams) -> dict[str, Any]:
    return {
        "instructions": fields.instructions,
        "conversation": {"id": fields.conversation} if fields.conversation else None,
        "previous_response_id": fields.previous_response_id,
        "store": fields.store,
        "background": fields.background,
        "metadata": fields.metadata,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_output_tokens": sampling.max_tokens,
        "truncation": "disabled",
        "text": {"format": {"type": "text"}},
    }
