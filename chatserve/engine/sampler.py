"""From logits to token ids.

Owns the choice of one token per row. Knows neither requests nor batches: what a row yields depends
on that row alone, and its randomness is a counter-based function of (seed, position), so a request
gives the same tokens alone, in a batch, after a preemption and on another worker.

No row is sorted. A greedy row costs one search for its largest logit, whatever the rows beside it
ask for. A drawn row costs an exponential for each token, and an order only among the tokens that
truncation can keep: a few hundred of them, found by one comparison with a bound (`_least_weight`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from chatserve.engine.api import SamplingParams

GREEDY_BELOW = 1e-5
"""Temperatures below this are greedy: dividing by them would overflow."""

_ROUNDING = 1e-6
"""Far more than rounding adds up to over any vocabulary, far less than anybody asks for."""


_BLOCKS_PER_TOP_TOKEN = 4
"""More blocks bring the bound for the k largest closer and take longer to go through."""

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """How to sample one row of logits.

    `position` counts the answer's tokens so far. `banned_token_ids` must not be chosen:
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
    return [
        _choose(logits[index], rows[index], token_id) if math.isfinite(largest) else None
        for index, (token_id, largest) in enumerate(_likeliest(logits))
    ]


def _likeliest(logits: Tensor) -> list[tuple[int, float]]:
    """Return the first largest logit of each row and its token; a NaN counts as the largest.

    On a CPU numpy compares whole vectors where torch compares one value at a time.
    """
    if logits.is_cpu:
        array = logits.numpy()
        token_ids = array.argmax(axis=1).tolist()
        return [(token_id, float(array[row, token_id])) for row, token_id in enumerate(token_ids)]
    largest, indices = logits.max(dim=-1)
    return list(zip(indices.tolist(), largest.tolist(), strict=True))


def _choose(row_logits: Tensor, row: SamplingRow, likeliest: int) -> int:
    """Choose a token of one row [vocab_size], whose largest logit is finite."""
    params = row.params
    if params.temperature < GREEDY_BELOW:
        return likeliest
    logits: Floats = row_logits.cpu().numpy()
    # Relative to the largest. An exponential in float32 takes a tenth of the time.
    weights = np.exp((logits - logits[likeliest]) / np.float32(params.temperature))
    uniform = uniform_at(params.seed, row.position)
    if not _truncates(params):
        return _invert(weights, uniform)
    total = weights.sum(dtype=np.float64)
    candidates = np.flatnonzero(weights >= _least_weight(weights, total, params))
    probs = weights[candidates] / total
    return int(candidates[_invert(_truncated(probs, params), uniform)])


def _truncates(params: SamplingParams) -> bool:
    return params.top_p < 1 or params.top_k > 0 or params.min_p > 0


def _least_weight(weights: Floats, total: float, params: SamplingParams) -> float:
    """Return a bound such that truncation keeps no token below it.

    Of n tokens, those whose probability is below (1 - top_p) / n have less than 1 - top_p together,
    so that all others reach top_p without them. The k-th largest of the maxima of blocks is at most
    the k-th largest of all.
    """
    num_tokens = len(weights)
    bounds = [max(0.0, 1 - params.top_p - _ROUNDING) / num_tokens * total, params.min_p]
    block_size = num_tokens // (_BLOCKS_PER_TOP_TOKEN * params.top_k) if params.top_k else 0
    if block_size:
        maxima = np.maximum.reduceat(weights, np.arange(0, num_tokens, block_size))
        bounds.append(np.partition(maxima, -params.top_k)[-params.top_k])
    return max(bounds)


def _truncated(probs: Floats, params: SamplingParams) -> Floats:
    """Return the probabilities with those that truncation drops set to 0.

    Top-k, top-p and min-p each keep a prefix of the tokens ordered by falling probability, equal
    ones by id. The most probable token is always kept. What is given must hold every token of
    that prefix, in the order of ids.
    """
    order = np.argsort(-probs, kind="stable")
    falling = probs[order]
    before = falling.cumsum() - falling  # probability of everything more probable
    keep = (before < params.top_p) & (falling >= params.min_p * falling[0])
    if params.top_k > 0:
        keep[params.top_k :] = False
    keep[0] = True
    kept = np.zeros_like(probs)
    kept[order[keep]] = falling[keep]
    return kept


def _invert(weights: Floats, uniform: float) -> int:
    """Draw an index by inverting the cumulative distribution in the order of token ids.

    Rounding that makes two neighbours by probability change places then moves no other token, and
    the draw hardly ever changes.
    """
    cumulative = weights.astype(np.float64).cumsum()
    total = cumulative[-1]
    drawn = cumulative.searchsorted(uniform * total, side="right")
    # The product may round up to the total, which no token lies behind.
    return int(min(drawn, cumulative.searchsorted(total)))


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
