"""What both completion endpoints do once they have a prompt: generate, and reply or stream.

Owns the common path: admit, draft, start, then either one JSON object or an event stream, and the
end of the generations when the client leaves. Knows neither messages nor templates.

The one idea: each of the `n` choices is a generation like any other, with an id and a log of its
own. They differ in their seeds; the engine computes their common prompt once. What is read and
sent is all of them or an error: when one is refused or fails, leaving cancels the rest.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from chatserve.engine.api import GenerationRequest, Outcome, RequestId, SamplingParams, Usage
from chatserve.errors import ClientError, StoreError
from chatserve.gateway.access import while_access_lasts
from chatserve.gateway.admission import (
    check_choices,
    check_prompt,
    sampling_params,
    seed_of_choice,
    timeout_ms,
)
from chatserve.gateway.disconnect import until_disconnect
from chatserve.gateway.generation import Answer, Draft
from chatserve.gateway.ids import new_id
from chatserve.gateway.models import ServedModel
from chatserve.gateway.rate_limits import limit_headers
from chatserve.gateway.replies import as_client_error, ignored_header, json_response
from chatserve.gateway.services import Services
from chatserve.gateway.sse import DONE, Write, data_frame, send_events
from chatserve.gateway.together import run_together
from chatserve.identity import Identity
from chatserve.protocol.completion_answers import (
    AnswerHead,
    AnswerShape,
    AnswerWriter,
    Choice,
    finish_reason,
)
from chatserve.protocol.errors import error_body
from chatserve.protocol.request_fields import QueueFields, ReplyFields
from chatserve.protocol.sampling import SamplingFields
from chatserve.store.keys import LOG_TTL_S
from chatserve.store.responses import ResponseRecord


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion that has been asked for, whichever surface it came by.

    `prompt_param` is the field that errors about the prompt name.
    """

    identity: Identity
    model: ServedModel
    prompt_token_ids: tuple[int, ...]
    prompt_param: str
    sampling: SamplingFields
    queue: QueueFields
    reply: ReplyFields
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
    request = Request(scope)
    check_choices(completion.reply.n, services.config.max_queue)
    drafts = _drafts(completion, services.config.request_timeout_s)
    record = drafts[0].record
    headers = {"x-request-id": record.response_id, **ignored_header(completion.ignored)}
    writer = AnswerWriter(
        AnswerHead(record.response_id, record.model, record.created_at),
        completion.shape,
        completion.reply.include_usage,
    )
    async with AsyncExitStack() as started:
        answers = [
            await started.enter_async_context(services.generations.start(draft)) for draft in drafts
        ]
        for answer in answers:  # the last one leaves the least
            headers |= limit_headers(answer.place.allowances) if answer.place else {}
        if completion.reply.stream:
            await send_events(receive, send, partial(_stream, request, answers, writer), headers)
            return
        async with while_access_lasts(request):
            choices = await until_disconnect(receive, run_together(map(_collect, answers)))
    if choices is not None:
        reply = json_response(writer.whole(choices), headers=headers)
        await reply(scope, receive, send)


def _drafts(completion: Completion, max_timeout_s: float | None) -> list[Draft]:
    """Return a draft for each choice, or raise InvalidRequest."""
    card = completion.model.card
    prompt = completion.prompt_token_ids
    check_prompt(prompt, card, param=completion.prompt_param)
    sampling = sampling_params(
        completion.sampling,
        card,
        prompt_len=len(prompt),
        default_max_tokens=completion.default_max_tokens,
    )
    n = completion.reply.n
    seeds = [seed_of_choice(sampling.seed, index) for index in range(n)]
    drafts = [_draft(completion, replace(sampling, seed=seed), max_timeout_s) for seed in seeds]
    return [replace(draft, together=n - index) for index, draft in enumerate(drafts)]


def _draft(completion: Completion, sampling: SamplingParams, max_timeout_s: float | None) -> Draft:
    identity = completion.identity
    request_id = RequestId(new_id(completion.id_prefix, identity.tenant))
    model_name = completion.model.card.name
    record = ResponseRecord(
        response_id=request_id,
        model=model_name,
        created_at=int(time.time()),
        ttl_s=LOG_TTL_S,
        assistant_message_id=new_id("msg_"),
        tenant=identity.tenant,
        user=identity.user,
    )
    request = GenerationRequest(
        request_id,
        model_name,
        completion.prompt_token_ids,
        sampling,
        tenant=identity.tenant,
        user=identity.user,
        key_id=identity.key_id,
        priority=completion.queue.priority,
        timeout_ms=timeout_ms(completion.queue.timeout, max_timeout_s),
    )
    return Draft(request, record, started_at=completion.started_at)


async def _collect(answer: Answer) -> Choice:
    """Read one choice to its end, or raise AnswerFailed."""
    texts: list[str] = []
    outcome: Outcome | None = None
    async for entry in answer.entries:
        if entry.sequence_number == 0:  # again, where the store has lost a part of it
            texts.clear()
        texts.append(entry.event.text)
        outcome = entry.event.outcome
    assert outcome is not None, f"the log of {answer.record.response_id} has no last event"
    return Choice("".join(texts), finish_reason(outcome), outcome.usage)


async def _stream(
    request: Request, answers: Sequence[Answer], writer: AnswerWriter, write: Write
) -> None:
    """Write the frames of a stream; an error after the start is a frame, and the last one.

    Each choice begins after the one before it: the official client counts on that.
    """
    has_begun = [asyncio.Event() for _ in (None, *answers)]
    has_begun[0].set()
    try:
        async with while_access_lasts(request):
            usages = await run_together(
                _stream_choice(index, answer, writer, write, has_begun)
                for index, answer in enumerate(answers)
            )
        if writer.include_usage:
            await write(data_frame(writer.usage_chunk(usages)))
        await write(DONE)
    except (ClientError, StoreError) as error:
        await write(data_frame(error_body(as_client_error(error))))


async def _stream_choice(
    index: int,
    answer: Answer,
    writer: AnswerWriter,
    write: Write,
    has_begun: Sequence[asyncio.Event],
) -> Usage:
    """Write the frames of one choice as its events come, and return what it used.

    `has_begun[index]` says that the choice before this one has begun.
    """
    usage = Usage()
    async for entry in answer.entries:
        if entry.sequence_number == 0 and has_begun[index + 1].is_set():
            raise StoreError("the store has lost a part of this answer, which cannot be taken back")
        chunk = writer.chunk(index, entry.event)
        if chunk is not None:
            await has_begun[index].wait()
            await write(data_frame(chunk))
            has_begun[index + 1].set()
        if entry.event.outcome is not None:
            usage = entry.event.outcome.usage
    return usage
