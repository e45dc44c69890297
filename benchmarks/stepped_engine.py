"""An engine driven step by step, with its pages counted while each step holds them.

Owns the loop and the counts. Knows neither the model nor torch: the runner may be one on integers.
The counts are taken when a step has been computed and before its results are taken in, the only
moment at which every page of the step is both held and written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.step_samples import StepSample, fills
from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PageCopy
from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.runner import Runner
from chatserve.engine.scheduler import Scheduler, SchedulerOutput
from chatserve.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Work:
    """A request as a benchmark asks it: so many tokens after a prompt, greedily, whatever comes."""

    name: str
    prompt_token_ids: Sequence[int]
    max_tokens: int

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.prompt_token_ids)

    def to_generation(self) -> GenerationRequest:
        sampling = SamplingParams(self.max_tokens, seed=0, temperature=0.0, ignore_eos=True)
        prompt = tuple(self.prompt_token_ids)
        return GenerationRequest(RequestId(self.name), "benchmark", prompt, sampling)


class WatchedRunner:
    """Passes steps on to a runner and counts the pages that each of them holds.

    Owns: the samples and the copies so far. Used from: whoever drives the engine.
    """

    def __init__(self, inner: Runner, scheduler: Scheduler):
        self.samples: list[StepSample] = []
        self.copies: list[PageCopy] = []
        self._inner = inner
        self._scheduler = scheduler

    def execute(self, output: SchedulerOutput) -> Mapping[RequestId, int | None]:
        sampled = self._inner.execute(output)
        self.samples.append(self._count(output))
        self.copies += output.page_copies
        return sampled

    def _count(self, output: SchedulerOutput) -> StepSample:
        scheduler, page_size = self._scheduler, self._scheduler.cache.page_size
        ends = {run.request.request_id: run.end for run in output.scheduled}
        filled = {copy.source: copy.num_tokens for copy in output.page_copies}
        num_tokens = 0
        for request in scheduler.running:
            assert request.held is not None
            end = ends.get(request.request_id, request.num_computed_tokens)
            num_tokens += end
            for page_id, count in zip(request.held.page_ids, fills(end, page_size), strict=False):
                filled[page_id] = max(filled.get(page_id, 0), count)
        return StepSample(
            allocated_slots=scheduler.cache.allocator.num_used * page_size,
            filled_slots=sum(filled.values()),
            num_tokens=num_tokens,
            num_running=len(scheduler.running),
            num_waiting=len(scheduler.waiting),
            is_short=bool(scheduler.waiting)
            and output.num_tokens < scheduler.config.max_num_batched_tokens,
        )


@dataclass(frozen=True, slots=True)
class PageTable:
    """The pages of one running request between two steps, and how many tokens they hold."""

    name: str
    page_ids: list[PageId]
    num_tokens: int
    num_prompt_tokens: int


@dataclass(slots=True)
class SteppedEngine:
    """Runs requests on a scheduler and a runner, in the thread of whoever calls.

    Owns: the engine core, what was generated, and the samples of every step.
    """

    scheduler: Scheduler
    runner: Runner
    tokenizer: Tokenizer
    outputs: dict[str, list[int]] = field(default_factory=dict)
    watch: WatchedRunner = field(init=False)
    _core: EngineCore = field(init=False)

    def __post_init__(self) -> None:
        self.watch = WatchedRunner(self.runner, self.scheduler)
        self._core = EngineCore(self.scheduler, self.watch, self.tokenizer)

    def add(self, *works: Work) -> None:
        for work in works:
            self.outputs[work.name] = []
            refused = self._core.add(work.to_generation())
            assert refused is None, f"{work.name}: {refused}"

    def step(self) -> None:
        self._core.begin_step()
        for output in self._core.finish_step():
            self.outputs[output.request_id] += output.token_ids

    def run(self, *works: Work) -> list[StepSample]:
        """Run requests to their end; return the samples of the steps that it took."""
        first = len(self.watch.samples)
        self.add(*works)
        while self._core.has_work:
            self.step()
        return self.watch.samples[first:]

    def page_tables(self) -> list[PageTable]:
        return [
            PageTable(
                request.request_id,
                list(request.held.page_ids),
                request.num_computed_tokens,
                request.num_prompt_tokens,
            )
            for request in self.scheduler.running
            if request.held is not None
        ]
