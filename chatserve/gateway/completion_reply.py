"""What both completion endpoints do once they have a prompt: generate, and reply or stream.

Owns the common path: admit, draft, start, then either one JSON object or an event stream, and the
end of the generation when the client leaves. Knows neither messages nor templates.
"""

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from chatserve.engine.api import GenerationRequest, Outcome, RequestId
from chatserve.errors import ClientError, StoreError
from chatserve.gateway.admission import check_prompt, sampling_params, timeout_ms
from chatserve.gateway.disconnect import until_disconnect
from chatserve.gateway.generation import Answer, Draft
from chatserve.gateway.ids import new_id
from chatserve.gateway.models import ServedModel
from chatserve.gateway.replies import as_client_error, ignored_header, json_response
from chatserve.gateway.services import Services
from chatserve.gateway.sse import DONE, data_frame, send_events
from chatserve.protocol.completion_answers import AnswerHead, AnswerShape, AnswerWriter
from chatserve.protocol.errors import error_body
from chatserve.protocol.request_fields import QueueFields, StreamFields
from chatserve.protocol.sampling import SamplingFields
from chatserve.store.keys import LOG_TTL_S
from chatserve.store.responses import ResponseRecord


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion that has been asked for, whichever surface it came by.

    `prompt_param` is the field that errors about the prompt name.
    """

    model: ServedModel
    prompt_token_ids: tuple[int, ...]
    prompt_param: str
    sampling: SamplingFields
    queue: QueueFields
    stream: StreamFields
    shape: AnswerShape
    id_prefix: str
    ignored: tuple[str, ...]
    started_at: float
    default_max_tokens: int | None = None


async def reply_to_completion(
    services: Services, completion: Completion, scope: Scope, receive: Receive, send: Send
) -> None:
    """Generate, and send the whole HTTP response.

    Raises:
        ClientError, StoreError: Nothing has been sent yet.
    """
    draft = _draft(completion, services.config.request_timeout_s)
    record = draft.record
    headers = {"x-request-id": record.response_id, **ignored_header(completion.ignored)}
    writer = AnswerWriter(
        AnswerHead(record.response_id, record.model, record.created_at),
        completion.shape,
        completion.stream.include_usage,
    )
    async with services.generations.start(draft) as answer:
        if completion.stream.stream:
            await send_events(receive, send, _frames(answer, writer), headers)
            return
        collected = await until_disconnect(receive, _collect(answer))
    if collected is not None:
        reply = json_response(writer.whole(*collected), headers=headers)
        await reply(scope, receive, send)


def _draft(completion: Completion, max_timeout_s: float | None) -> Draft:
    card = completion.model.card
    prompt = completion.prompt_token_ids
    check_prompt(prompt, card, param=completion.prompt_param)
    sampling = sampling_params(
        completion.sampling,
        card,
        prompt_len=len(prompt),
        default_max_tokens=completion.default_max_tokens,
    )
    request_id = RequestId(new_id(completion.id_prefix))
    record = ResponseRecord(
        response_id=request_id,
        model=card.name,
        created_at=int(time.time()),
        ttl_s=LOG_TTL_S,
        assistant_message_id=new_id("msg_"),
    )
    request = GenerationRequest(
        request_id,
        card.name,
        prompt,
        sampling,
        priority=completion.queue.priority,
        timeout_ms=timeout_ms(completion.queue.timeout, max_timeout_s),
    )
    return Draft(request, record, started_at=completion.started_at)


async def _collect(answer: Answer) -> tuple[str, Outcome]:
    texts: list[str] = []
    outcome: Outcome | None = None
    async for entry in answer.entries:
        texts.append(entry.event.text)
        outcome = entry.event.outcome
    assert outcome is not None, f"the log of {answer.record.response_id} has no last event"
    return "".join(texts), outcome


async def _frames(answer: Answer, writer: AnswerWriter) -> AsyncGenerator[bytes, None]:
    """Yield the frames of a stream; an error after the start is a frame, and the last one."""
    try:
        async for entry in answer.entries:
            for chunk in writer.chunks(entry.event):
                yield data_frame(chunk)
        yield DONE
    except (ClientError, StoreError) as error:
        yield data_frame(error_body(as_client_error(error)))
