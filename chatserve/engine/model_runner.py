"""Executes one step on the model.

Owns the decoder and the KV pool's tensors. Knows the scheduler's output and nothing of how it came
about: copies first, then one forward pass over every token of the step, then one token per run that
reached its end. Between two steps it hands out pages as bytes and takes them back.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from chatserve.cache.page_allocator import PageId
from chatserve.engine.api import RequestId
from chatserve.engine.forward_batch import ForwardBatch
from chatserve.engine.page_contents import PageContents, PoolLayout
from chatserve.engine.sampler import SamplingRow, sample
from chatserve.engine.scheduler import ScheduledRequest, SchedulerOutput
from chatserve.kernels.ops import KVPages, Ops
from chatserve.model.decoder import Decoder


class ModelRunner:
    """The engine's way to tensors.

    Owns: decoder and KV pool. Used from: the engine thread.
    """

    def __init__(
        self,
        decoder: Decoder,
        pages: KVPages,
        ops: Ops,
        *,
        eos_token_ids: frozenset[int],
        device: str = "cpu",
    ):
        self._decoder = decoder
        self._pages = pages
        self._page_size = pages.k.shape[2]
        self._ops = ops
        self._eos_token_ids = eos_token_ids
        self._device = device

    @torch.inference_mode()
    def execute(self, output: SchedulerOutput) -> dict[RequestId, int | None]:
        """Run the step; return the sampled token of each run that samples.

        None stands for logits that were not finite.
        """
        self._copy_pages(output)
        batch = ForwardBatch.build(output.scheduled, self._page_size, self._device)
        hidden = self._decoder(
            batch.input_ids, batch.positions, batch.attention, self._pages, batch.logits_rows
        )
        if not batch.sampling_runs:
            return {}
        logits = self._decoder.compute_logits(hidden)
        token_ids = sample(logits, [self._sampling_row(run) for run in batch.sampling_runs])
        pairs = zip(batch.sampling_runs, token_ids, strict=True)
        return {run.request.request_id: token_id for run, token_id in pairs}

    def pool_layout(self, weights: str) -> PoolLayout:
        """Describe the pool; `weights` is the fingerprint of the decoder's."""
        k = self._pages.k
        return PoolLayout(
            weights=weights,
            dtype=str(k.dtype).removeprefix("torch."),
            element_bytes=k.element_size(),
            num_layers=k.shape[0],
            page_size=k.shape[2],
            num_kv_heads=k.shape[3],
            head_dim=k.shape[4],
        )

    def read_pages(self, page_ids: Sequence[PageId]) -> PageContents:
        """Return a copy of pages, in the order given. Call it between two steps."""
        return PageContents(*(_page_bytes(pool, page_ids) for pool in self._pools))

    def write_pages(self, page_ids: Sequence[PageId], contents: PageContents) -> None:
        """Put what `read_pages` returned into other pages. Call it between two steps."""
        for pool, raw in zip(self._pools, (contents.k, contents.v), strict=True):
            _write_page_bytes(pool, page_ids, raw)

    @property
    def _pools(self) -> tuple[Tensor, Tensor]:
        return self._pages.k, self._pages.v

    def _copy_pages(self, output: SchedulerOutput) -> None:
        if output.page_copies:
            copies = output.page_copies
            sources = torch.tensor([copy.source for copy in copies], device=self._device)
            destinations = torch.tensor([copy.destination for copy in copies], device=self._device)
            self._ops.page_copy(self._pages, sources, destinations)

    def _sampling_row(self, run: ScheduledRequest) -> SamplingRow:
        request, params = run.request, run.request.sampling
        banned: tuple[int, ...] = ()
        if request.num_output_tokens < params.min_tokens:
            banned = (*self._eos_token_ids, *params.stop_token_ids)
        return SamplingRow(params, request.position_in_answer, banned)


def _page_bytes(pool: Tensor, page_ids: Sequence[PageId]) -> memoryview:
    index = torch.tensor(page_ids, device=pool.device)
    pages = pool.index_select(1, index).cpu()  # [num_layers, num_pages, page_size, heads, dim]
    return pages.view(torch.uint8).flatten().numpy().data


def _write_page_bytes(pool: Tensor, page_ids: Sequence[PageId], raw: memoryview) -> None:
    index = torch.tensor(page_ids, device=pool.device)
    pages = torch.frombuffer(raw, dtype=pool.dtype)
    shape = (pool.shape[0], len(page_ids), *pool.shape[2:])
    pool.index_copy_(1, index, pages.view(shape).to(pool.device))
