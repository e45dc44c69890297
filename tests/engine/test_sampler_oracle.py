"""The sampler against its definition: the whole vocabulary in order of probability.

The oracle sorts every row. It is what the sampler would be if time did not matter, and the sampler
must choose the same tokens.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from chatserve.engine.api import SamplingParams
from chatserve.engine.sampler import GREEDY_BELOW, SamplingRow, sample, uniform_at

TEMPERATURES = (1e-9, 2e-5, 0.6, 1.0, 2.0, 1e4)
TRUNCATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"top_p": 0.9},
    {"top_p": 1e-9},
    {"top_p": 1 - 1e-7},
    {"top_p": 1 - 1e-16},
    {"min_p": 0.05},
    {"min_p": 1.0},
    {"top_p": 0.95, "min_p": 1e-4},
)
TOP_KS = (0, 1, 50, 10**6)
NUM_POSITIONS = 4


def combinations() -> Iterator[SamplingRow]:
    """Yield every combination of parameters at several positions, each with a seed of its own."""
    choices = product(TEMPERATURES, TRUNCATIONS, TOP_KS, range(NUM_POSITIONS))
    for seed, (temperature, truncation, top_k, position) in enumerate(choices):
        params = SamplingParams(
            max_tokens=9, seed=seed, temperature=temperature, top_k=top_k, **truncation
        )
        yield SamplingRow(params, position)


def sorted_choice(logits: Tensor, row: SamplingRow) -> int:
    """Choose the token of one row [vocab_size] with the whole vocabulary in order."""
    params = row.params
    if params.temperature < GREEDY_BELOW:
        return int(logits.argmax())
    relative = (logits - logits.max()) / params.temperature
    weights = np.exp(relative.numpy())
    probs = torch.from_numpy(weights / weights.sum(dtype=np.float64))
    falling, order = probs.sort(descending=True, stable=True)
    rank = torch.arange(len(probs))
    before = falling.cumsum(dim=0) - falling
    keep = (rank < (params.top_k or len(probs))) & (before < params.top_p)
    keep &= falling >= params.min_p * falling[0]
    keep[0] = True
    kept = torch.zeros_like(probs).scatter(0, order, torch.where(keep, falling, 0.0))
    cumulative = kept.cumsum(dim=0)
    total = cumulative[-1:]
    uniform = uniform_at(params.seed, row.position)
    chosen = torch.searchsorted(cumulative, uniform * total, right=True)
    return int(torch.minimum(chosen, torch.searchsorted(cumulative, total)))


def spread_logits(num_rows: int, vocab_size: int) -> Tensor:
    """Return rows as a model makes them: a few tokens stand out, and rows differ in how far."""
    generator = torch.Generator().manual_seed(vocab_size)
    scale = torch.logspace(-1, 1, num_rows).unsqueeze(1)
    return scale * torch.randn(num_rows, vocab_size, generator=generator)


def tied_logits(num_rows: int, vocab_size: int) -> Tensor:
    """Return rows of five values only, so that every bound falls among equal tokens."""
    generator = torch.Generator().manual_seed(vocab_size)
    return torch.randint(5, (num_rows, vocab_size), generator=generator).float()


@pytest.mark.parametrize("make_logits", [spread_logits, tied_logits])
@pytest.mark.parametrize("vocab_size", [1, 7, 1000])
def test_every_combination_of_parameters_chooses_as_the_definition_says(
    make_logits: Callable[[int, int], Tensor], vocab_size: int
) -> None:
    rows = list(combinations())
    logits = make_logits(len(rows), vocab_size)

    chosen = sample(logits.clone(), rows)

    assert chosen == [sorted_choice(each, row) for each, row in zip(logits, rows, strict=True)]


def test_a_huge_vocabulary_is_no_exception() -> None:
    rows = list(combinations())[::24]
    logits = spread_logits(len(rows), 200_000)

    chosen = sample(logits.clone(), rows)

    assert chosen == [sorted_choice(each, row) for each, row in zip(logits, rows, strict=True)]


def test_rows_of_one_token_repeated_keep_the_lowest_ids() -> None:
    logits = torch.zeros(400, 300)
    rows = [SamplingRow(SamplingParams(9, seed, top_k=10), 0) for seed in range(400)]

    chosen = sample(logits, rows)

    assert set(chosen) == set(range(10))


def test_a_row_chooses_the_same_alone_and_beside_rows_of_every_kind() -> None:
    rows = list(combinations())
    logits = spread_logits(len(rows), 500)

    together = sample(logits.clone(), rows)
    alone = [
        sample(each.unsqueeze(0).clone(), [row])[0] for each, row in zip(logits, rows, strict=True)
    ]

    assert together == alone
