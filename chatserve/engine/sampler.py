"""From logits to token ids.

Owns the choice of one token per row. Knows neither requests nor batches: what a row yields depends
on that row alone, and its randomness is a counter-based function of (seed, position), so a request
gives the same tokens alone, in a batch, after a preemption and on another worker.

No row is sorted. A greedy row costs one search for its largest logit, whatever the rows beside it
ask for. A drawn row costs a softmax over the vocabulary, and an order only among the tokens that
truncation can keep: a few hundred of them, found by one comparison with a bound (`_least_prob`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from chatserve.engine.api import SamplingParams

GREEDY_BELOW = 1e-5
"""Temperatures below this are greedy: dividing by them would overflow."""

_ROUNDING = 1e-6
"""Far more than rounding adds up to over any vocabulary, far less than anybody asks for."""


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


def _choose(logits: Tensor, row: SamplingRow, likeliest: int) -> int:
    if row.params.temperature < GREEDY_BELOW:
        return likeliest
    # A divisor of one dimension makes this one pass from float32 to float64.
    divisor = torch.tensor([row.params.temperature], dtype=torch.float64, device=logits.device)
    probs = torch.softmax(logits / divisor, dim=-1)  # [vocab_size]
    uniform = uniform_at(row.params.seed, row.position)
    if not _truncates(row.params):
        return _invert(probs, uniform)
    candidates = (probs >= _least_prob(probs, row.params)).nonzero().squeeze(1)
    return int(candidates[_invert(_truncated(probs[candidates], row.params), uniform)])


def _truncates(params: SamplingParams) -> bool:
    return params.top_p < 1 or params.top_k > 0 or params.min_p > 0


def _least_prob(probs: Tensor, params: SamplingParams) -> float:
    """Return a bound such that truncation keeps no token below it.

    Of n tokens, those below (1 - top_p) / n have less than 1 - top_p together, so that all others
    reach top_p without them.
    """
    bounds = [max(0.0, 1 - params.top_p - _ROUNDING) / len(probs)]
    if params.min_p > 0:
        bounds.append(params.min_p * float(probs.max()))
    if 0 < params.top_k < len(probs):
        bounds.append(float(probs.topk(params.top_k).values[-1]))
    return max(bounds)


def _truncated(probs: Tensor, params: SamplingParams) -> Tensor:
    """Return the probabilities with those that truncation drops set to 0.

    Top-k, top-p and min-p each keep a prefix of the tokens ordered by falling probability, equal
    ones by id. The most probable token is always kept. What is given must hold every token of
    that prefix, in the order of ids.
    """
    falling, order = probs.sort(descending=True, stable=True)
    before = falling.cumsum(dim=0) - falling  # probability of everything more probable
    keep = (before < params.top_p) & (falling >= params.min_p * falling[0])
    if params.top_k > 0:
        keep[params.top_k :] = False
    keep[0] = True
    return torch.zeros_like(probs).scatter(0, order, torch.where(keep, falling, 0.0))


def _invert(probs: Tensor, uniform: float) -> int:
    """Draw an index by inverting the cumulative distribution in the order of token ids.

    Rounding that makes two neighbours by probability change places then moves no other token, and
    the draw hardly ever changes.
    """
    cumulative = probs.cumsum(dim=0)
    total = cumulative[-1:]
    drawn = torch.searchsorted(cumulative, uniform * total, right=True)
    # The product may round up to the total, which no token lies behind.
    return int(torch.minimum(drawn, torch.searchsorted(cumulative, total)))


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
