"""From a `response.create` to a generation that is ready to start.

Owns how a create becomes a prompt, a record and, in a session, a turn; and the head of a response
object, which is made from the record so that every replay repeats it exactly. Knows no socket.
"""

import time
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.gateway.admission import check_prompt, sampling_params, timeout_ms
from chatserve.gateway.generation import Draft
from chatserve.gateway.history import History, read_history
from chatserve.gateway.ids import new_id
from chatserve.gateway.model_list import find_model
from chatserve.gateway.models import ServedModel
from chatserve.gateway.personas import resolve_prompt
from chatserve.gateway.services import Services
from chatserve.identity import Identity
from chatserve.protocol.events import ResponseHead
from chatserve.protocol.messages import InputMessage
from chatserve.protocol.responses import ResponseFields, ResponseRequest
from chatserve.store.keys import LOG_TTL_S
from chatserve.store.responses import Abandonment, ResponseRecord
from chatserve.store.sessions import Message, SessionTurn, joined
from chatserve.text.chat_template import ChatMessage

# How long an unstored response can be built on at most: it goes with its connection, unless the
# gateway dies first. Over HTTP nothing can build on it.
UNSTORED_TTL_S = 3600

_IGNORED = "ignored"
_CONTINUE = "chatserve:continue"


@dataclass(frozen=True, slots=True)
class Order:
    """A create, the id that its response shall have, and who it comes from.

    `own` are the unstored responses that this caller may build on. `is_repeatable` says that the
    client chose the id, so that the same create may come again. Over HTTP, a client that leaves
    wants its answer no more.
    """

    request: ResponseRequest
    response_id: RequestId
    identity: Identity
    own: Container[str] = ()
    is_repeatable: bool = False
    is_http: bool = False


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What the model is given; the last `num_begun` ids begin the answer that it goes on with."""

    token_ids: tuple[int, ...]
    num_begun: int


async def draft_response(services: Services, order: Order) -> Draft:
    """Return a generation for a create. Nothing is stored yet.

    Raises:
        ClientError: The create cannot be served as it is.
    """
    started_at = time.perf_counter()
    request, fields = order.request, order.request.fields
    asked = await find_model(services, order.identity, fields.model)
    model = asked.served
    await services.quotas.check_requests(order.identity)
    history = await read_history(services, fields, order.identity, order.own, model.encoder.bound)
    new_messages = to_messages(fields.input)
    messages = _prompt_messages(await _instructions(services, order), history, new_messages)
    begun = messages.pop() if fields.continues else None
    prompt_messages = services.preamble.before(asked.messages(messages))
    prompt = await _prompt(model, prompt_messages, begun, order.identity.tenant)
    check_prompt(prompt.token_ids, model.card, param="input")
    sampling = sampling_params(
        request.sampling,
        model.card,
        prompt_len=len(prompt.token_ids),
        default_max_tokens=await services.quotas.default_max_tokens(
            order.identity, len(prompt.token_ids)
        ),
    )
    # A warm-up only reads its conversation.
    turn = _turn(history, fields, new_messages) if fields.generate else None
    record = ResponseRecord(
        response_id=order.response_id,
        model=model.card.name,
        created_at=int(time.time()),
        ttl_s=_ttl_s(order, history, services.config.response_ttl_s),
        assistant_message_id=new_id("msg_"),
        tenant=order.identity.tenant,
        user=order.identity.user,
        abandonment=_abandonment(order, turn),
        fingerprint=request.fingerprint if order.is_repeatable else "",
        generates=fields.generate,
        session_id=turn.session_id if turn else None,
        parent_id=(*history.messages, *new_messages)[-1].message_id if turn else "",
        request={**_echo(fields, sampling), _IGNORED: list(request.ignored)},
        messages=() if turn else (*history.messages, *new_messages),
    )
    limit_s = services.config.request_timeout_s
    return Draft(
        _generation(order, record, prompt, sampling, limit_s),
        record,
        turn,
        started_at,
        prompt_messages=tuple(prompt_messages),
    )


def head_of(record: ResponseRecord) -> ResponseHead:
    """Return what the events of a response repeat of its request."""
    echo = {name: value for name, value in record.request.items() if name != _IGNORED}
    return ResponseHead(
        response_id=record.response_id,
        message_id=record.assistant_message_id,
        model=record.model,
        created_at=record.created_at,
        parent_id=record.parent_id if record.session_id is not None else None,
        echo=echo,
        ignored=tuple(record.request.get(_IGNORED, ())),
        generates=record.generates,
        continues=record.request.get(_CONTINUE, False),
    )


def to_messages(items: Sequence[InputMessage]) -> tuple[Message, ...]:
    """Return messages as they are stored."""
    now = int(time.time())
    return tuple(Message(new_id("msg_"), item.role, item.text, now) for item in items)


async def _instructions(services: Services, order: Order) -> str:
    """Return the stored prompt that a create names, a blank line, and its own instructions."""
    fields = order.request.fields
    texts = [fields.instructions] if fields.instructions else []
    reference = fields.prompt_reference
    if reference is not None:
        texts.insert(0, await resolve_prompt(services, order.identity, reference))
    return "\n\n".join(texts)


def _prompt_messages(
    instructions: str, history: History, new_messages: Sequence[Message]
) -> list[ChatMessage]:
    system = [ChatMessage("system", instructions)] if instructions else []
    said = [
        ChatMessage(message.role, message.content, message.token_ids)
        for message in joined((*history.messages, *new_messages))
    ]
    return system + said


async def _prompt(
    model: ServedModel, messages: Sequence[ChatMessage], begun: ChatMessage | None, tenant: str
) -> _Prompt:
    begun_ids: tuple[int, ...] = ()
    if begun is not None:
        begun_ids = await model.begun_token_ids(begun, tenant=tenant, param="input")
    prompt_ids = await model.chat_token_ids(messages, tenant=tenant, param="input")
    return _Prompt(prompt_ids + begun_ids, len(begun_ids))


def _generation(
    order: Order,
    record: ResponseRecord,
    prompt: _Prompt,
    sampling: SamplingParams,
    max_timeout_s: float | None,
) -> GenerationRequest:
    queue, generates = order.request.queue, order.request.fields.generate
    return GenerationRequest(
        order.response_id,
        record.model,
        prompt.token_ids,
        sampling if generates else replace(sampling, max_tokens=1, min_tokens=0),
        tenant=order.identity.tenant,
        user=order.identity.user,
        key_id=order.identity.key_id,
        priority=queue.priority,
        timeout_ms=timeout_ms(queue.timeout, max_timeout_s),
        generates=generates,
        num_begun_tokens=prompt.num_begun,
    )


def _ttl_s(order: Order, history: History, stored_ttl_s: int) -> int:
    fields = order.request.fields
    # A warm-up of a conversation holds a copy of it, which must not outlive it for long.
    is_copy = not fields.generate and history.session_id is not None
    if is_copy or (order.is_http and not fields.store):
        return min(LOG_TTL_S, stored_ttl_s)
    return stored_ttl_s if fields.store else UNSTORED_TTL_S


def _abandonment(order: Order, turn: SessionTurn | None) -> Abandonment:
    """Return the row of the table in `readers.py` that an answer belongs to."""
    fields = order.request.fields
    if turn is not None or fields.background:
        return Abandonment.RUN
    return Abandonment.ABORT if order.is_http or not fields.store else Abandonment.GRACE


def _turn(
    history: History, fields: ResponseFields, new_messages: tuple[Message, ...]
) -> SessionTurn | None:
    if history.session_id is None:
        return None
    leaf_id = history.messages[-1].message_id if history.messages else ""
    return SessionTurn(
        history.session_id, new_messages, fields.parent_id, leaf_id, continues=fields.continues
    )


def _echo(fields: ResponseFields, sampling: SamplingParams) -> dict[str, Any]:
    return {
        **({_CONTINUE: True} if fields.continues else {}),
        "instructions": fields.instructions,
        "prompt": fields.prompt and fields.prompt.model_dump(),
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
