"""From the scheduler's integers to the tensors of one forward pass.

Owns the order of rows within a step: one-token runs first (they decode), then the longer ones.
Knows no policy; every number in here follows from the `SchedulerOutput`. What there may be hundreds
of for one request, its pages and the tokens of a prefill, goes through numpy as whole arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
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
    logits_rows: Tensor  # [num_sampling_runs], int64, ascending
    sampling_runs: list[ScheduledRequest]

    @classmethod
    def build(cls, scheduled: Sequence[ScheduledRequest], page_size: int, device: str) -> Self:
        """Lay out the step's runs. There must be at least one."""
        decodes = [run for run in scheduled if len(run.token_ids) == 1]
        prefills = [run for run in scheduled if len(run.token_ids) > 1]
        runs = decodes + prefills
        ends = accumulate(len(run.token_ids) for run in runs)
        sampling = [(end - 1, run) for end, run in zip(ends, runs, strict=True) if run.samples]

        def tensor(values: NDArray[Any]) -> Tensor:
            return torch.from_numpy(values).to(device)

        prefill_lens = [len(run.token_ids) for run in prefills]
        attention = AttentionBatch(
            slot_mapping=tensor(_slot_mapping(decodes, prefills, page_size)),
            num_decodes=len(decodes),
            decode_page_table=tensor(_page_table(decodes)),
            decode_seq_lens=tensor(_seq_lens(decodes)),
            prefill_page_table=tensor(_page_table(prefills)),
            prefill_seq_lens=tensor(_seq_lens(prefills)),
            cu_seqlens_q=tensor(np.array([0, *accumulate(prefill_lens)], dtype=np.int32)),
        )
        token_ids = list(chain.from_iterable(run.token_ids for run in runs))
        return cls(
            input_ids=tensor(np.array(token_ids, dtype=np.int64)),
            positions=tensor(_positions(decodes, prefills)),
            attention=attention,
            logits_rows=tensor(np.array([row for row, _run in sampling], dtype=np.int64)),
            sampling_runs=[run for _row, run in sampling],
        )


def _positions(
    decodes: Sequence[ScheduledRequest], prefills: Sequence[ScheduledRequest]
) -> NDArray[np.int64]:
    """Return each token's index in its own sequence, [num_tokens]."""
    starts = np.array([run.start for run in decodes], dtype=np.int64)
    return np.concatenate([starts, *(np.arange(run.start, run.end) for run in prefills)])


def _slot_mapping(
    decodes: Sequence[ScheduledRequest], prefills: Sequence[ScheduledRequest], page_size: int
) -> NDArray[np.int64]:
    """Return where each token's KV is written, [num_tokens]."""
    decode_slots = [
        run.page_ids[run.start // page_size] * page_size + run.start % page_size for run in decodes
    ]
    slots = [np.array(decode_slots, dtype=np.int64)]
    for run in prefills:
        positions = np.arange(run.start, run.end)
        pages = np.array(run.page_ids, dtype=np.int64)[positions // page_size]
        slots.append(pages * page_size + positions % page_size)
    return np.concatenate(slots)


def _page_table(runs: Sequence[ScheduledRequest]) -> NDArray[np.int32]:
    """Return [num_runs, max_pages]. Rows are padded with page 0, behind every seq_len."""
    width = max((len(run.page_ids) for run in runs), default=0)
    table = np.zeros((len(runs), width), dtype=np.int32)
    for row, run in zip(table, runs, strict=True):
        row[: len(run.page_ids)] = run.page_ids
    return table


def _seq_lens(runs: Sequence[ScheduledRequest]) -> NDArray[np.int32]:
    return np.array([run.end for run in runs], dtype=np.int32)
