"""A fake engine whose letters are drawn, so that answers differ by their seeds and nothing else."""

import random
import string
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.fake_model import FakeModel, make_card

from chatserve.cache.prefix_cache import PrefixCache
from chatserve.engine.api import RequestId
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.fake import FakeRunner
from chatserve.engine.scheduler import (
    ScheduledRequest,
    Scheduler,
    SchedulerConfig,
    SchedulerOutput,
)
from chatserve.text.tokenizer import Tokenizer

NUM_PAGES = 512
PAGE_SIZE = 16


class _DrawingRunner:
    """Draws a letter by (seed, position) wherever the fake runner asks the model.

    Owns: the fake runner, which keeps the pages and notices a wrong one.
    Used from: the engine thread.
    """

    def __init__(self, pages: FakeRunner, tokenizer: Tokenizer) -> None:
        self._pages = pages
        self._letters = tokenizer.encode(string.ascii_lowercase)

    def execute(self, output: SchedulerOutput) -> Mapping[RequestId, int | None]:
        self._pages.execute(output)
        return {
            run.request.request_id: self._letter(run) for run in output.scheduled if run.samples
        }

    def _letter(self, run: ScheduledRequest) -> int:
        return random.Random(f"{run.request.sampling.seed} {run.end}").choice(self._letters)


@dataclass(frozen=True, slots=True)
class SeededEngine:
    """How to build it."""

    max_num_seqs: int = 8

    def build(self, model: FakeModel) -> EngineThread:
        card = make_card()
        tokenizer = Tokenizer.from_card(card)
        config = SchedulerConfig(
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=512,
            max_model_len=card.max_model_len,
            eos_token_ids=frozenset(card.eos_token_ids),
        )
        runner = _DrawingRunner(FakeRunner(NUM_PAGES, PAGE_SIZE, model.next_token), tokenizer)
        return EngineThread(
            EngineCore(Scheduler(config, PrefixCache(NUM_PAGES, PAGE_SIZE)), runner, tokenizer)
        )
