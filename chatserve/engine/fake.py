"""An engine without a model: integers in place of tensors.

Owns a pool of pages that hold token ids instead of KV. A step writes its tokens into their slots
and reads each request's whole history back through its page table, so a page that was shared,
copied or freed wrongly changes the answer. Scheduler, cache and worker run on it unchanged.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from chatserve.cache.prefix_cache import PrefixCache
from chatserve.engine.api import RequestId
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.scheduler import (
    ScheduledRequest,
    Scheduler,
    SchedulerConfig,
    SchedulerOutput,
)
from chatserve.text.tokenizer import Tokenizer

NextToken = Callable[[Sequence[int]], int | None]
"""The model: the token after a history, or None for logits that are not finite."""


class FakeRunner:
    """Executes a step on pages of integers.

    Owns: the pages. Used from: the engine thread.
    """

    def __init__(
        self, num_pages: int, page_size: int, next_token: NextToken, *, step_s: float = 0.0
    ):
        self._pages: list[list[int | None]] = [[None] * page_size for _ in range(num_pages)]
        self._page_size = page_size
        self._next_token = next_token
        self._step_s = step_s

    def execute(self, output: SchedulerOutput) -> Mapping[RequestId, int | None]:
        if self._step_s:
            time.sleep(self._step_s)
        for copy in output.page_copies:
            self._pages[copy.destination] = list(self._pages[copy.source])
        for run in output.scheduled:
            self._write(run)
        return {
            run.request.request_id: self._next_token(self._read(run))
            for run in output.scheduled
            if run.samples
        }

    def _write(self, run: ScheduledRequest) -> None:
        for position, token_id in enumerate(run.token_ids, run.start):
            page = self._pages[run.page_ids[position // self._page_size]]
            page[position % self._page_size] = token_id

    def _read(self, run: ScheduledRequest) -> list[int]:
        history = [token_id for page_id in run.page_ids for token_id in self._pages[page_id]]
        known = [token_id for token_id in history[: run.end] if token_id is not None]
        assert len(known) == run.end, "a slot was read that nobody had written"
        return known


def build_fake_engine(
    tokenizer: Tokenizer,
    config: SchedulerConfig,
    next_token: NextToken,
    *,
    num_pages: int = 256,
    page_size: int = 16,
    step_s: float = 0.0,
) -> EngineThread:
    """Return an engine whose answers are those of `next_token`, a step taking `step_s` seconds."""
    scheduler = Scheduler(config, PrefixCache(num_pages, page_size))
    runner = FakeRunner(num_pages, page_size, next_token, step_s=step_s)
    return EngineThread(EngineCore(scheduler, runner, tokenizer))
