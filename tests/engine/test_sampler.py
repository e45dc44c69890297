"""The sampler: greedy, truncation, seeds, and rows that do not disturb each other."""

import math
from typing import Any

import pytest
import torch

from chatserve.engine.api import SamplingParams
from chatserve.engine.sampler import SamplingRow, sample, uniform_at

VOCAB = 50


def row(position: int = 0, *, banned: tuple[int, ...] = (), **params: Any) -> SamplingRow:
    fields = {"max_tokens": 9, "seed": 1, **params}
    return SamplingRow(SamplingParams(**fields), position, banned)


def make_logits(num_rows: int = 1, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_rows, VOCAB, generator=generator)


def draws(logits: torch.Tensor, count: int, **params: Any) -> list[int | None]:
    rows = [row(position, **params) for position in range(count)]
    return sample(logits.repeat(count, 1), rows)


@pytest.mark.parametrize("temperature", [0.0, 1e-9])
def test_no_temperature_is_greedy(temperature: float) -> None:
    logits = make_logits()

    assert sample(logits.clone(), [row(temperature=temperature)]) == [int(logits.argmax())]


def test_top_k_of_one_is_greedy_at_any_temperature() -> None:
    logits = make_logits()

    assert set(draws(logits, 50, temperature=2.0, top_k=1)) == {int(logits.argmax())}


@pytest.mark.parametrize("top_k", [2, 5])
def test_top_k_keeps_the_k_most_probable(top_k: int) -> None:
    logits = make_logits()
    allowed = set(logits[0].topk(top_k).indices.tolist())

    assert set(draws(logits, 400, temperature=3.0, top_k=top_k)) == allowed


def test_top_p_keeps_the_smallest_set_that_reaches_p() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()

    assert set(draws(logits, 400, top_p=0.7)) == {0, 1}
    assert set(draws(logits, 400, top_p=1e-6)) == {0}


def test_min_p_is_relative_to_the_most_probable() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()

    assert set(draws(logits, 400, min_p=0.31)) == {0, 1}


def test_frequencies_follow_the_distribution() -> None:
    probs = [0.5, 0.3, 0.15, 0.05]
    tokens = draws(torch.tensor([probs]).log(), 20_000)

    for token_id, prob in enumerate(probs):
        deviation = math.sqrt(prob * (1 - prob) / len(tokens))
        assert abs(tokens.count(token_id) / len(tokens) - prob) < 5 * deviation


def test_a_seeded_request_draws_the_same_alone_and_in_a_batch() -> None:
    logits = make_logits(8)
    rows = [row(3, temperature=0.9, seed=seed, top_p=0.95) for seed in range(8)]

    together = sample(logits.clone(), rows)
    alone = [sample(logits[i : i + 1].clone(), rows[i : i + 1])[0] for i in range(8)]

    assert together == alone
    assert len(set(together)) > 1


def test_seeds_and_positions_draw_independently() -> None:
    values = [uniform_at(seed, position) for seed in range(50) for position in range(50)]

    assert all(0 <= value < 1 for value in values)
    assert len(set(values)) == len(values)
    assert abs(sum(values) / len(values) - 0.5) < 0.03


def test_banned_tokens_are_never_chosen() -> None:
    logits = make_logits()
    best = int(logits.argmax())

    assert sample(logits.clone(), [row(temperature=0, banned=(best,))]) != [best]


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_that_is_not_finite_yields_none_and_leaves_the_others_alone(
    poison: float, temperature: float
) -> None:
    logits = make_logits(4)
    rows = [row(temperature=temperature)] * 4
    clean = sample(logits.clone(), rows)
    logits[1, 7] = poison

    poisoned = sample(logits, rows)

    assert poisoned[1] is None
    assert [poisoned[i] for i in (0, 2, 3)] == [clean[i] for i in (0, 2, 3)]


def test_temperature_flattens_the_distribution() -> None:
    logits = torch.tensor([[0.8, 0.2]]).log()

    counts = {t: draws(logits, 4000, temperature=t).count(0) / 4000 for t in (0.5, 1.0, 2.0)}

    # 0.8^(1/t) against 0.2^(1/t)
    assert abs(counts[0.5] - 16 / 17) < 0.03
    assert abs(counts[1.0] - 0.8) < 0.03
    assert abs(counts[2.0] - 2 / 3) < 0.03


def test_the_seed_decides_between_rows_that_are_otherwise_equal() -> None:
    logits = make_logits()
    rows = [row(seed=seed) for seed in range(20)]

    assert len(set(sample(logits.repeat(20, 1), rows))) > 5


def test_neighbours_by_probability_that_change_places_move_hardly_any_draw() -> None:
    """Rounding by 2e-5 changed one draw in seventeen while tokens were drawn in falling order."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(1, 20_000, generator=generator)
    noise = 2e-5 * torch.randn(1, 20_000, generator=generator)

    pairs = zip(draws(logits, 200), draws(logits + noise, 200), strict=True)

    assert sum(a != b for a, b in pairs) <= 4
