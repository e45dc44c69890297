"""Executes one step on the model.

Owns the decoder and the KV pool's tensors. Knows the scheduler's output and nothing of how it came
about: copies first, then one forward pass over every token of the step, then one token per run that
reached its end.
"""

import torch

from chatserve.engine.api import RequestId
from chatserve.engine.forward_batch import ForwardBatch
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
        hidden = self._decoder(batch.input_ids, batch.positions, batch.attention, self._pages)
        if not batch.sampling_runs:
            return {}
        logits = self._decoder.compute_logits(hidden[batch.logits_rows])
        token_ids = sample(logits, [self._sampling_row(run) for run in batch.sampling_runs])
        pairs = zip(batch.sampling_runs, token_ids, strict=True)
        return {run.request.request_id: token_id for run, token_id in pairs}

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
        return SamplingRow(params, request.num_output_tokens, banned)
