"""Which models can be asked right now, and the prompt encoder of each.

Owns the gateway's picture of the workers: their latest heartbeats, and one encoder per model card.
Knows no weights: a card is all that a gateway needs of a model. Knows no threads: when an encoder
works is the business of `tokenising.py`.

The picture is refreshed every second in the background, and once more when a model is asked for
that it does not show, so that a worker's first heartbeat counts at once.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from chatserve.engine.api import ModelCard
from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest, ModelError, NotFound, StoreError, Unavailable
from chatserve.gateway.background import Background
from chatserve.gateway.tokenising import Tokenising
from chatserve.protocol.errors import describe
from chatserve.store.workers import WorkerBeat, Workers
from chatserve.text.chat_template import ChatMessage
from chatserve.text.prompt import PromptEncoder

logger = logging.getLogger(__name__)

REFRESH_S = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as a gateway knows it.

    Its methods work for a tenant, which takes its turn. Errors about a text name `param`, the field
    that it came from.

    Owns: nothing that changes.
    Used from: the event loop.
    """

    card: ModelCard
    fingerprint: str
    encoder: PromptEncoder
    loaded_at: int
    tokenising: Tokenising

    async def chat_token_ids(
        self, messages: Sequence[ChatMessage], *, tenant: str, param: str
    ) -> tuple[int, ...]:
        """Return the prompt for the next answer of a conversation, or raise InvalidRequest."""
        num_chars = sum(len(message.content) for message in messages)
        encode = partial(self.encoder.prompt_token_ids, messages)
        return await self._encoded(tenant, num_chars, encode, param)

    async def begun_token_ids(
        self, answer: ChatMessage, *, tenant: str, param: str
    ) -> tuple[int, ...]:
        """Return what goes behind the prompt of an answer that is to go on."""
        encode = partial(self.encoder.begun_token_ids, answer)
        return await self._encoded(tenant, len(answer.content), encode, param)

    async def text_token_ids(self, text: str, *, tenant: str, param: str) -> tuple[int, ...]:
        """Return the prompt that continues a raw text, or raise InvalidRequest."""
        encode = partial(self.encoder.completion_token_ids, text)
        return await self._encoded(tenant, len(text), encode, param)

    async def text_of(self, token_ids: Sequence[int], *, tenant: str) -> str:
        """Return what tokens say, control tokens included."""
        decode = partial(self.encoder.tokenizer.decode, token_ids, skip_special=False)
        return await self.tokenising.run(tenant, len(token_ids), decode)

    async def _encoded(self, tenant: str, num_chars: int, encode: Callable[[], T], param: str) -> T:
        try:
            return await self.tokenising.run(tenant, num_chars, encode)
        except InvalidRequest as error:
            error.param = error.param or param
            raise


class ServedModels:
    """The models of the workers that live.

    Owns: the last heartbeats, the encoders and their threads, and the task that refreshes both.
    Used from: the event loop.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._beats: list[WorkerBeat] = []
        self._models: dict[str, ServedModel] = {}
        self._tokenising = Tokenising()
        self._refreshing = Background(self._keep_fresh)
        self._lock = asyncio.Lock()

    @property
    def beats(self) -> Sequence[WorkerBeat]:
        """The last heartbeats that were read, one for each worker that lives."""
        return self._beats

    @property
    def live(self) -> list[ServedModel]:
        """The models that a live worker serves, by name."""
        names = sorted({beat.model for beat in self._beats} & self._models.keys())
        return [self._models[name] for name in names]

    async def start(self) -> None:
        """Read the picture once, then keep it fresh until `aclose`."""
        await self.refresh()
        self._refreshing.start()

    async def aclose(self) -> None:
        await self._refreshing.aclose()
        await self._tokenising.aclose()

    async def get(self, name: str) -> ServedModel:
        """Return a model that can be asked now.

        Raises:
            NotFound: No worker serves a model of this name.
            Unavailable: No worker lives at all.
        """
        found = self._find(name)
        if found is None:
            await self.refresh()
            found = self._find(name)
        if found is None:
            raise self.refusal(name, self.live)
        return found

    def refusal(self, name: str, usable: Sequence[ServedModel]) -> NotFound | Unavailable:
        """Return why there is no model of a name, to somebody who may use those."""
        if not self._beats:
            return self.no_worker()
        served = "; served: " + ", ".join(model.card.name for model in usable)
        if not usable:
            served = " to this tenant, nor is any other" if self.live else "; served: none yet"
        return NotFound(
            f"model {describe(name)} is not served{served}",
            code=ErrorCode.MODEL_NOT_FOUND,
            param="model",
        )

    def no_worker(self) -> Unavailable:
        return Unavailable("no engine worker is running", code=ErrorCode.NO_WORKER)

    async def refresh(self) -> None:
        """Read the heartbeats, and the cards that are new."""
        async with self._lock:
            self._beats = await self._workers.live()
            for beat in self._beats:
                known = self._models.get(beat.model)
                if known is None or known.fingerprint != beat.card_fingerprint:
                    await self._load(beat)

    def _find(self, name: str) -> ServedModel | None:
        return next((model for model in self.live if model.card.name == name), None)

    async def _load(self, beat: WorkerBeat) -> None:
        card = await self._workers.card(beat.model)
        if card is None:  # its worker publishes it again with the next heartbeat
            return
        try:
            encoder = await asyncio.to_thread(PromptEncoder, card)
        except ModelError as error:
            logger.error("the card of model %s cannot be used: %s", beat.model, error)
            return
        self._models[beat.model] = ServedModel(
            card, beat.card_fingerprint, encoder, int(time.time()), self._tokenising
        )

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            try:
                await self.refresh()
            except StoreError as error:
                logger.log(error.log_level, "the workers' heartbeats cannot be read: %s", error)
