"""From the scheduler's integers to the tensors of one forward pass.

Owns the order of rows within a step: one-token runs first (they decode), then the longer ones.
Knows no policy; every number in here follows from the `SchedulerOutput`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from chatserve.engine.scheduler import ScheduledRequest
from chatserve.kernels.ops import AttentionBatch


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """One step as tensors.

    `logits_rows` are the rows whose logits are wanted; row i of them belongs to `sampling_runs[i]`.
    """

    input_ids: Tensor  # [num_tokens], int64
    positions: Tensor  # [num_tokens], int64
    attention: AttentionBatch
    logits_rows: Tensor  # [num_sampling_runs], int64
    sampling_runs: list[ScheduledRequest]

    @classmethod
    def build(
        cls, scheduled: Sequence[ScheduledRequest], page_size: int, device: str
    ) -> "ForwardBatch":
        """Lay out the step's runs. There must be at least one."""
        decodes = [run for run in scheduled if len(run.token_ids) == 1]
        prefills = [run for run in scheduled if len(run.token_ids) > 1]
        runs = decodes + prefills
        ends = list(accumulate(len(run.token_ids) for run in runs))
        sampling = [(end - 1, run) for end, run in zip(ends, runs, strict=True) if run.samples]

        def ints(values: list[int], dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        prefill_lens = [len(run.token_ids) for run in prefills]
        attention = AttentionBatch(
            slot_mapping=ints([slot for run in runs for slot in _slots(run, page_size)]),
            num_decodes=len(decodes),
            decode_page_table=_page_table(decodes, device),
            decode_seq_lens=ints([run.end for run in decodes], torch.int32),
            prefill_page_table=_page_table(prefills, device),
            prefill_seq_lens=ints([run.end for run in prefills], torch.int32),
            cu_seqlens_q=ints([0, *accumulate(prefill_lens)], torch.int32),
            max_seqlen_q=max(prefill_lens, default=0),
        )
        return cls(
            input_ids=ints([token_id for run in runs for token_id in run.token_ids]),
            positions=ints([position for run in runs for position in range(run.start, run.end)]),
            attention=attention,
            logits_rows=ints([row for row, _run in sampling]),
            sampling_runs=[run for _row, run in sampling],
        )


def _slots(run: ScheduledRequest, page_size: int) -> list[int]:
    return [
        run.page_ids[position // page_size] * page_size + position % page_size
        for position in range(run.start, run.end)
    ]


def _page_table(runs: Sequence[ScheduledRequest], device: str) -> Tensor:
    """Return [num_runs, max_pages] int32. Rows are padded with page 0, behind every seq_len."""
    width = max((len(run.page_ids) for run in runs), default=0)
    rows = [[*run.page_ids, *[0] * (width - len(run.page_ids))] for run in runs]
    return torch.tensor(rows, dtype=torch.int32, device=device).reshape(len(runs), width)
