"""From logits to token ids.

Owns the choice of one token per row. Knows neither requests nor batches: what a row yields depends
on that row alone, and its randomness is a counter-based function of (seed, position), so a request
gives the same tokens alone, in a batch, after a preemption and on another worker.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from chatserve.engine.api import SamplingParams

GREEDY_BELOW = 1e-5
"""Temperatures below this are greedy: dividing by them would overflow."""


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """How to sample one row of logits.

    `position` counts the request's output tokens so far. `banned_token_ids` must not be chosen:
    the ends of a request that has not reached its `min_tokens`.
    """

    params: SamplingParams
    position: int
    banned_token_ids: Sequence[int] = ()


def sample(logits: Tensor, rows: Sequence[SamplingRow]) -> list[int | None]:
    """Choose a token per row of `logits` [num_rows, vocab_size], float32; changed in place.

    Returns None for a row that has a NaN or whose largest logit is infinite.
    """
    for index, row in enumerate(rows):
        if row.banned_token_ids:
            logits[index, list(row.banned_token_ids)] = -torch.inf
    largest, token_ids = logits.max(dim=-1)  # both [num_rows]; a NaN wins every comparison
    is_finite = torch.isfinite(largest)
    drawn = [
        index
        for index, row in enumerate(rows)
        if row.params.temperature >= GREEDY_BELOW and is_finite[index]
    ]
    if drawn:
        token_ids[drawn] = _draw(logits[drawn], [rows[index] for index in drawn])
    pairs = zip(token_ids.tolist(), is_finite.tolist(), strict=True)
    return [token_id if finite else None for token_id, finite in pairs]


def _draw(logits: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """Draw one token per row by inverting the distribution that is left after truncation.

    1. Top-k, top-p and min-p each keep a prefix of the tokens ordered by falling probability. The
       most probable token is always kept.
    2. The distribution is inverted in the order of token ids. Rounding that makes two neighbours
       by probability change places then moves no other token, and the draw hardly ever changes.
    """

    def column(values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=logits.device).unsqueeze(1)

    temperature = column([row.params.temperature for row in rows])  # [num_rows, 1], like the rest
    top_p = column([row.params.top_p for row in rows])
    top_k = column([row.params.top_k or logits.shape[1] for row in rows])
    min_p = column([row.params.min_p for row in rows])
    uniform = column([uniform_at(row.params.seed, row.position) for row in rows])

    probs = torch.softmax(logits.double() / temperature, dim=-1)  # [num_rows, vocab_size]
    falling, order = probs.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(logits.shape[1], device=logits.device)
    before = falling.cumsum(dim=-1) - falling  # probability of everything more probable
    keep = (rank < top_k) & (before < top_p) & (falling >= min_p * falling[:, :1])  # 1
    keep[:, 0] = True
    kept = torch.zeros_like(probs).scatter(1, order, torch.where(keep, falling, 0.0))
    cumulative = kept.cumsum(dim=-1)  # 2
    total = cumulative[:, -1:].contiguous()
    chosen = torch.searchsorted(cumulative, uniform * total, right=True)  # [num_rows, 1]
    # The product may round up to the total, which no token lies behind.
    last = torch.searchsorted(cumulative, total)
    return torch.minimum(chosen, last).squeeze(1)


def uniform_at(seed: int, position: int) -> float:
    """Return a number in [0, 1) for the token at `position` of a request with `seed`.

    SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) over both, seed and position mixed in turn.
    """
    return (_mix(_mix(seed) ^ position) >> 11) / 2.0**53  # 53 bits: what a double can hold


def _mix(value: int) -> int:
    mask = (1 << 64) - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)
