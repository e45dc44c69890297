"""Names conversations after their first answer.

Owns when the model is asked for a title; what of its reply is one is decided in title_words.py. A
title is never worth a wait or an error: the request has the lowest priority, nobody reads it, and
whatever goes wrong leaves the first words in place. That a user's own title is never replaced is
decided in the script that sets it.

The one idea: the question is put at the end of the very messages that the first answer was made of,
so that all of it but the question is in the prefix cache already.
"""

import asyncio
import logging
import time
from collections import Counter
from contextlib import aclosing
from functools import partial

from chatserve.engine.api import FinishReason, GenerationRequest, RequestId, SamplingParams
from chatserve.errors import ClientError, StoreError
from chatserve.gateway.conversation_reading import ConversationReading
from chatserve.gateway.generation import Draft
from chatserve.gateway.ids import new_id
from chatserve.gateway.models import ServedModels
from chatserve.gateway.title_words import BEGINNING, QUESTION, title_of
from chatserve.protocol.request_fields import MAX_PRIORITY
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Place
from chatserve.store.log_readers import LogReaders
from chatserve.store.responses import Abandonment, ResponseRecord
from chatserve.store.sessions import Message, TitleSource, joined
from chatserve.text.chat_template import ChatMessage

logger = logging.getLogger(__name__)

_MAX_TITLE_TOKENS = 24
_TITLE_TTL_S = 60
_ANSWER_TIMEOUT_S = 3600.0
_TITLE_TIMEOUT_MS = 60_000
_MAX_PENDING = 256
_MAX_PENDING_OF_TENANT = 32


class Titles:
    """Asks for the titles of the conversations that were begun through this gateway.

    Owns: a task for each that has none yet; no tenant has so many that others get none.
    Used from: the event loop.
    """

    def __init__(
        self,
        store: Store,
        log_readers: LogReaders,
        models: ServedModels,
        conversations: ConversationReading,
        *,
        max_queue: int,
    ) -> None:
        self._store = store
        self._log_readers = log_readers
        self._models = models
        self._conversations = conversations
        self._max_queue = max_queue
        self._pending: set[asyncio.Task[None]] = set()
        self._num_pending: Counter[str] = Counter()

    def watch(self, draft: Draft) -> None:
        """Name the session of a turn that has begun, once its answer has ended."""
        tenant = draft.request.tenant
        is_busy = self._num_pending[tenant] >= _MAX_PENDING_OF_TENANT
        if draft.turn is None or is_busy or len(self._pending) >= _MAX_PENDING:
            return
        naming = asyncio.create_task(self._name(draft, draft.turn.session_id))
        self._pending.add(naming)
        self._num_pending[tenant] += 1
        naming.add_done_callback(partial(self._forget, tenant))

    async def aclose(self) -> None:
        """Stop asking; sessions without an answer to the question keep their first words."""
        for naming in self._pending:
            naming.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)

    def _forget(self, tenant: str, naming: asyncio.Task[None]) -> None:
        self._pending.discard(naming)
        self._num_pending[tenant] -= 1
        if not self._num_pending[tenant]:
            del self._num_pending[tenant]

    async def _name(self, first: Draft, session_id: str) -> None:
        try:
            session = await self._store.sessions.get(session_id)
            if session is None or session.title_source is not TitleSource.WORDS:
                return
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                await self._text_of(first.request)
                answer = await self._only_answer(first, session_id)
                title = await self._title_for(first, answer) if answer else ""
            if title:
                await self._store.sessions.suggest_title(session_id, title)
        except (ClientError, StoreError, TimeoutError) as error:
            logger.info("%s keeps its first words as its title: %s", session_id, error)

    async def _only_answer(self, first: Draft, session_id: str) -> Message | None:
        """Return the last message of a conversation if it is its only answer, and has text."""
        model = await self._models.get(first.request.model)
        conversation = await self._conversations.open(first.record.owner, session_id)
        said = await conversation.history(conversation.outline.branch(), model.encoder.bound)
        branch = joined(said)
        answers = [message for message in branch if message.role == "assistant"]
        return branch[-1] if answers == branch[-1:] and branch[-1].content.strip() else None

    async def _title_for(self, first: Draft, answer: Message) -> str:
        """Return the title that the model finds; empty where it has none that is of use."""
        said = [message.content for message in first.prompt_messages if message.role == "user"]
        return title_of(await self._ask(first, answer), said[-1] if said else "", answer.content)

    async def _ask(self, first: Draft, answer: Message) -> str:
        """Return what the model makes of a conversation; empty when it cannot be asked now."""
        model = await self._models.get(first.request.model)
        tenant = first.request.tenant
        said = ChatMessage("assistant", answer.content, answer.token_ids)
        asked = [*first.prompt_messages, said, ChatMessage("user", QUESTION)]
        begun = ChatMessage("assistant", BEGINNING)
        prompt = (
            *await model.chat_token_ids(asked, tenant=tenant, param="input"),
            *await model.begun_token_ids(begun, tenant=tenant, param="input"),
        )
        room = model.card.max_model_len - len(prompt)
        if room < 1 or len(prompt) > model.card.max_prompt_tokens:
            return ""
        request = GenerationRequest(
            RequestId(new_id("resp_", tenant)),
            model.card.name,
            prompt,
            SamplingParams(
                max_tokens=min(_MAX_TITLE_TOKENS, room), seed=0, temperature=0.0, stop=("\n",)
            ),
            tenant=tenant,
            user=first.request.user,
            key_id=first.request.key_id,
            priority=MAX_PRIORITY,
            timeout_ms=_TITLE_TIMEOUT_MS,
        )
        place = await self._store.queue.enqueue(
            request, _record(request), max_queue=self._max_queue
        )
        return await self._text_of(request) if isinstance(place, Place) else ""

    async def _text_of(self, request: GenerationRequest) -> str:
        """Return the text of an answer once it has ended; empty for one that was cut."""
        texts: list[str] = []
        is_whole = False
        async with aclosing(self._log_readers.follow(request.request_id)) as entries:
            async for entry in entries:
                if entry.sequence_number == 0:  # again, where the store has lost a part of it
                    texts.clear()
                texts.append(entry.event.text)
                outcome = entry.event.outcome
                is_whole = outcome is not None and outcome.finish_reason is FinishReason.STOP
        return "".join(texts) if is_whole else ""


def _record(request: GenerationRequest) -> ResponseRecord:
    return ResponseRecord(
        response_id=request.request_id,
        model=request.model,
        created_at=int(time.time()),
        ttl_s=_TITLE_TTL_S,
        assistant_message_id=new_id("msg_"),
        tenant=request.tenant,
        user=request.user,
        abandonment=Abandonment.RUN,
        request={"store": False},
        messages=(),
    )
