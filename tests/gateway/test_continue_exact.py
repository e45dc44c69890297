"""An answer that was cut and continued is, token for token, the one that was never cut."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from e2e.tiny_model import write_tiny_model
from gateway.continue_helpers import answers, ask, go_on, new_conversation
from gateway.fake_model import FakeModel
from gateway.gateway_helpers import Service, WorkerSettings, run_service

from chatserve.config import EngineConfig
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.launch import build_engine
from chatserve.store.connection import open_store
from chatserve.store.embedded import EmbeddedServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

WHOLE = 48
GREEDY = {"temperature": 0}
SEEDED = {"temperature": 1, "seed": 11}


@dataclass(frozen=True)
class Built:
    """An engine that was built already."""

    engine: EngineThread

    def build(self, _model: FakeModel) -> EngineThread:
        return self.engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tiny(
    store_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    """A service over a real model, tiny and random, whose tokens are bytes."""
    folder: Path = tmp_path_factory.mktemp("continue")
    model = write_tiny_model(folder / "tiny")
    built = build_engine(
        EngineConfig(model=str(model), data_dir=folder, num_pages=256, num_threads=1)
    )
    url = store_server.url.replace("db=0", "db=3")
    store = await open_store(url)
    await store.commands.call("FLUSHDB")
    await store.aclose()
    settings = WorkerSettings(card=built.card, engine=Built(built.engine))
    async with run_service(url, worker=settings) as service:
        yield service


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED], ids=["greedy", "seeded"])
@pytest.mark.parametrize("cut", [1, 2, 3, 5, 8, 13, 21, 34, 47])
async def test_continued_answer_equals_the_uncut_one(
    tiny: Service, cut: int, sampling: dict[str, Any]
) -> None:
    members = {"ignore_eos": True, **sampling}
    uncut, continued = await new_conversation(tiny), await new_conversation(tiny)
    await ask(tiny, uncut, "Say something.", WHOLE, **members)

    await ask(tiny, continued, "Say something.", cut, **members)
    response = await go_on(tiny, continued, WHOLE - cut, **members)

    (whole,), (first, second) = await answers(tiny, uncut), await answers(tiny, continued)
    assert (*first.token_ids, *second.token_ids) == whole.token_ids
    assert first.content + second.content == whole.content
    assert response["usage"]["output_tokens"] == WHOLE - cut


async def test_all_but_the_last_token_of_a_continued_answer_is_in_the_cache(tiny: Service) -> None:
    conversation_id = await new_conversation(tiny)
    await ask(tiny, conversation_id, "Is it cached?", 20, ignore_eos=True, **GREEDY)

    usage = (await go_on(tiny, conversation_id, 4, ignore_eos=True, **GREEDY))["usage"]

    assert usage["input_tokens_details"]["cached_tokens"] == usage["input_tokens"] - 1


async def test_next_turn_finds_a_continued_answer_in_the_cache(tiny: Service) -> None:
    conversation_id = await new_conversation(tiny)
    await ask(tiny, conversation_id, "Tell me more.", 9, ignore_eos=True, **GREEDY)
    await go_on(tiny, conversation_id, 9, ignore_eos=True, **GREEDY)
    usage = (await go_on(tiny, conversation_id, 9, ignore_eos=True, **GREEDY))["usage"]
    computed = usage["input_tokens"] + usage["output_tokens"] - 1  # the last is never computed

    after = (await ask(tiny, conversation_id, "And then?", 4, **GREEDY))["usage"]

    assert after["input_tokens_details"]["cached_tokens"] == computed
