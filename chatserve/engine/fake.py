"""An engine without a model: integers in place of tensors.

Owns a pool of pages that hold token ids instead of KV. A step writes its tokens into their slots
and reads each request's whole history back through its page table, so a page that was shared,
copied or freed wrongly changes the answer. Scheduler, cache and worker run on it unchanged.
"""

import time
from array import array
from collections.abc import Callable, Mapping, Sequence

from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PageCopy, PrefixCache
from chatserve.engine.api import RequestId
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.page_contents import PageContents, PoolLayout
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
        self._copy(output.page_copies)
        for run in output.scheduled:
            self._write(run)
        return {
            run.request.request_id: self._next_token(self._read(run))
            for run in output.scheduled
            if run.samples
        }

    def pool_layout(self, weights: str) -> PoolLayout:
        return PoolLayout(
            weights=weights,
            dtype="int64",
            element_bytes=8,
            num_layers=1,
            page_size=self._page_size,
            num_kv_heads=1,
            head_dim=1,
        )

    def read_pages(self, page_ids: Sequence[PageId]) -> PageContents:
        """Return token ids plus one, as keys and as values; 0 is a slot that nobody wrote."""
        slots = [token_id for page_id in page_ids for token_id in self._pages[page_id]]
        raw = array("q", [0 if token_id is None else token_id + 1 for token_id in slots])
        return PageContents(k=memoryview(bytearray(raw)), v=memoryview(bytearray(raw)))

    def write_pages(self, page_ids: Sequence[PageId], contents: PageContents) -> None:
        assert contents.k == contents.v, "keys and values are the same token ids here"
        slots = [number - 1 if number else None for number in contents.k.cast("q")]
        pages = [slots[i : i + self._page_size] for i in range(0, len(slots), self._page_size)]
        for page_id, page in zip(page_ids, pages, strict=True):
            self._pages[page_id] = page

    def _copy(self, copies: Sequence[PageCopy]) -> None:
        """Read all sources before any destination is written; no slot more than was asked for."""
        read = [self._pages[copy.source][: copy.num_tokens] for copy in copies]
        for copy, slots in zip(copies, read, strict=True):
            self._pages[copy.destination] = [*slots, *[None] * (self._page_size - len(slots))]

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
