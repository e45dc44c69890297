"""The runner between the scheduler and the decoder, with a stand-in for the model."""

import torch

from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PageCopy
from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.model_runner import ModelRunner
from chatserve.engine.request import Request
from chatserve.engine.scheduler import ScheduledRequest, SchedulerOutput
from chatserve.kernels import get_ops
from chatserve.kernels.ops import AttentionBatch, KVPages

EOS, BEST = 2, 7


class FavouriteDecoder:
    """Always likes the end of sequence best, then `BEST`."""

    def __call__(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        batch: AttentionBatch,
        kv: KVPages,
        rows: torch.Tensor,
    ) -> torch.Tensor:
        return ids[rows].float().unsqueeze(1)

    def compute_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(len(hidden), 10)
        logits[:, EOS], logits[:, BEST] = 9.0, 5.0
        return logits


def make_runner() -> tuple[ModelRunner, KVPages]:
    shape = (2, 4, 4, 1, 8)  # layers, pages, page size, heads, head dim
    pages = KVPages(torch.randn(shape), torch.randn(shape))
    decoder = FavouriteDecoder()
    runner = ModelRunner(decoder, pages, get_ops("cpu"), eos_token_ids=frozenset({EOS}))  # type: ignore[arg-type]
    return runner, pages


def step_of(*, min_tokens: int = 0, output: int = 0, copies: int = 0) -> SchedulerOutput:
    sampling = SamplingParams(max_tokens=9, seed=0, temperature=0.0, min_tokens=min_tokens)
    request = Request.create(
        GenerationRequest(RequestId("r"), "m", (5,), sampling), resumed_token_ids=[6] * output
    )
    run = ScheduledRequest(request, output, [6], [PageId(1)], samples=True)
    page_copies = [PageCopy(PageId(0), PageId(3), 2)][:copies]
    return SchedulerOutput([run], page_copies, [], [])


def test_an_end_is_not_chosen_before_min_tokens_are_reached() -> None:
    runner, _ = make_runner()

    assert runner.execute(step_of(min_tokens=3, output=2)) == {"r": BEST}
    assert runner.execute(step_of(min_tokens=3, output=3)) == {"r": EOS}


def test_pages_are_copied_in_every_layer_before_the_step() -> None:
    runner, pages = make_runner()
    before = pages.k[:, 0].clone()

    runner.execute(step_of(copies=1))

    assert torch.equal(pages.k[:, 3], before)
    assert torch.equal(pages.v[:, 3], pages.v[:, 0])
