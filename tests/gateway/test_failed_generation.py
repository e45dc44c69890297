"""Answers that the engine cannot go on with, as each surface tells them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from gateway.fake_model import FakeModel, make_card
from gateway.gateway_helpers import NUM_PAGES, Service, WorkerSettings, chat, run_service, sse_data

from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.fake import build_fake_engine
from chatserve.engine.scheduler import SchedulerConfig
from chatserve.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class NumberlessEngine:
    """One whose logits are never finite."""

    def build(self, _: FakeModel) -> EngineThread:
        card = make_card()
        config = SchedulerConfig(
            max_num_seqs=8,
            max_num_batched_tokens=512,
            max_model_len=card.max_model_len,
            eos_token_ids=frozenset(card.eos_token_ids),
        )
        tokenizer = Tokenizer.from_card(card)
        return build_fake_engine(tokenizer, config, lambda _: None, num_pages=NUM_PAGES)


@pytest_asyncio.fixture
async def failing(store_url: str) -> AsyncIterator[Service]:
    async with run_service(store_url, worker=WorkerSettings(engine=NumberlessEngine())) as service:
        yield service


async def test_failed_answer_is_a_500_over_http(failing: Service) -> None:
    reply = await failing.http.post("/v1/chat/completions", json=chat("Hello"))

    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "generation_failed")


async def test_failed_answer_ends_a_stream_with_its_error(failing: Service) -> None:
    reply = await failing.http.post("/v1/chat/completions", json=chat("Hello", stream=True))

    assert "generation_failed" in sse_data(reply.text)[-1]


async def test_failed_answer_is_a_response_on_the_socket(failing: Service) -> None:
    async with failing.socket() as socket:
        await socket.create("Hello")
        events = await socket.receive_answer()

    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["chatserve:code"] == "generation_failed"
