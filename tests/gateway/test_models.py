"""A gateway's picture of the workers, without a store."""

from dataclasses import replace

import pytest
from gateway.fake_model import make_card
from gateway.gateway_helpers import eventually

from chatserve.engine.api import EngineStats, ModelCard
from chatserve.errors import NotFound, StoreError, Unavailable
from chatserve.gateway import models as models_module
from chatserve.gateway.models import ServedModels
from chatserve.gateway.tokenising import MAX_INLINE_CHARS
from chatserve.store.workers import WorkerBeat
from chatserve.text.chat_template import ChatMessage


class FakeWorkers:
    """The workers and cards that a test wants there to be."""

    def __init__(self) -> None:
        self.beats: list[WorkerBeat] = []
        self.cards: dict[str, ModelCard] = {}
        self.num_failures = 0
        self.num_cards_read = 0

    def add(self, card: ModelCard, fingerprint: str = "1") -> None:
        self.beats = [WorkerBeat("w", card.name, fingerprint, "0", EngineStats())]
        self.cards[card.name] = card

    async def live(self) -> list[WorkerBeat]:
        if self.num_failures:
            self.num_failures -= 1
            raise StoreError("away")
        return self.beats

    async def card(self, model: str) -> ModelCard | None:
        self.num_cards_read += 1
        return self.cards.get(model)


@pytest.fixture
def workers() -> FakeWorkers:
    return FakeWorkers()


@pytest.fixture
def models(workers: FakeWorkers) -> ServedModels:
    return ServedModels(workers)  # type: ignore[arg-type]


async def test_first_heartbeat_counts_at_once(models: ServedModels, workers: FakeWorkers) -> None:
    with pytest.raises(Unavailable, match="no engine worker"):
        await models.get("echo")

    workers.add(make_card())

    assert (await models.get("echo")).card.name == "echo"


async def test_unknown_model_is_told_what_is_served(
    models: ServedModels, workers: FakeWorkers
) -> None:
    workers.add(make_card())

    with pytest.raises(NotFound, match=r'"other" is not served; served: echo'):
        await models.get("other")


async def test_card_is_read_once_and_again_when_it_changes(
    models: ServedModels, workers: FakeWorkers
) -> None:
    workers.add(make_card())
    await models.refresh()
    await models.refresh()
    assert workers.num_cards_read == 1

    workers.add(make_card(max_model_len=100), fingerprint="2")
    await models.refresh()

    assert workers.num_cards_read == 2
    assert (await models.get("echo")).card.max_model_len == 100


async def test_model_whose_workers_are_gone_is_not_served(
    models: ServedModels, workers: FakeWorkers
) -> None:
    workers.add(make_card())
    await models.refresh()

    workers.beats = []
    await models.refresh()

    assert models.live == []
    with pytest.raises(Unavailable):
        await models.get("echo")


async def test_model_without_a_card_yet_is_not_served(
    models: ServedModels, workers: FakeWorkers
) -> None:
    workers.add(make_card())
    workers.cards.clear()

    with pytest.raises(NotFound, match="none yet"):
        await models.get("echo")


async def test_card_that_cannot_be_used_is_reported_and_not_served(
    models: ServedModels, workers: FakeWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    workers.add(replace(make_card(), tokenizer_json="{}"))

    await models.refresh()

    assert models.live == []
    assert "echo" in caplog.text


async def test_picture_stays_fresh_while_the_store_comes_and_goes(
    models: ServedModels, workers: FakeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models_module, "REFRESH_S", 0.001)
    await models.start()
    workers.num_failures = 2
    workers.add(make_card())

    await eventually(lambda: bool(models.live))

    await models.aclose()


@pytest.mark.parametrize("length", [10, MAX_INLINE_CHARS + 1])
async def test_ids_are_the_same_on_and_off_the_event_loop(
    models: ServedModels, workers: FakeWorkers, length: int
) -> None:
    workers.add(make_card())
    model = await models.get("echo")
    text = "x" * length

    chat_ids = await model.chat_token_ids([ChatMessage("user", text)], tenant="t", param="input")
    text_ids = await model.text_token_ids(text, tenant="t", param="prompt")

    assert chat_ids == model.encoder.prompt_token_ids([ChatMessage("user", text)])
    assert text_ids == model.encoder.completion_token_ids(text)
