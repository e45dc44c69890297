"""What is decided with the model card in hand."""

from dataclasses import replace
from typing import Any

import pytest
from gateway.fake_model import make_card

from chatserve.errors import InvalidRequest
from chatserve.gateway.admission import (
    check_choices,
    check_prompt,
    sampling_params,
    seed_of_choice,
    timeout_ms,
)
from chatserve.protocol.sampling import SamplingFields

CARD = replace(
    make_card(max_model_len=100),
    default_temperature=0.7,
    default_top_p=0.8,
    default_top_k=40,
)


def params(**fields: Any) -> Any:
    return sampling_params(SamplingFields(**fields), CARD, prompt_len=10)


def test_defaults_are_the_models() -> None:
    sampling = params()

    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.7, 0.8, 40)
    assert (sampling.min_p, sampling.max_tokens) == (0.0, 90)


def test_what_the_client_says_wins_even_where_it_is_zero() -> None:
    sampling = params(temperature=0, top_p=0.5, top_k=0, min_p=0.1, min_tokens=3, ignore_eos=True)

    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0, 0.5, 0)
    assert (sampling.min_p, sampling.min_tokens, sampling.ignore_eos) == (0.1, 3, True)


def test_top_k_of_minus_one_is_the_whole_vocabulary() -> None:
    assert params(top_k=-1).top_k == 0


@pytest.mark.parametrize(("asked", "given"), [(5, 5), (90, 90), (91, 90), (10**12, 90)])
def test_limit_is_clamped_to_what_the_context_leaves(asked: int, given: int) -> None:
    assert params(max_tokens=asked).max_tokens == given
    assert params(max_tokens=asked, min_tokens=asked).min_tokens == given


def test_default_limit_is_used_only_where_none_is_named() -> None:
    fields = SamplingFields()

    sampling = sampling_params(fields, CARD, prompt_len=10, default_max_tokens=16)

    assert sampling.max_tokens == 16


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
def test_first_choice_has_the_seed_of_the_request(seed: int) -> None:
    assert seed_of_choice(seed, 0) == seed


def test_choices_of_neighbouring_seeds_have_seeds_of_their_own_that_a_client_may_send() -> None:
    seeds = {seed_of_choice(seed, index) for seed in range(1000) for index in range(8)}

    assert len(seeds) == 8000
    assert all(SamplingFields(seed=seed).seed == seed for seed in seeds)


def test_seed_is_drawn_where_none_was_given() -> None:
    assert params().seed != params().seed
    assert params(seed=7).seed == 7
    assert params(seed=0).seed == 0
    assert params(seed=-1).seed == 2**63 - 1


def test_stop_token_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="259"):
        params(stop_token_ids=[5, 259])


@pytest.mark.parametrize("length", [1, 98, 99])
def test_prompt_that_leaves_room_for_a_token_is_accepted(length: int) -> None:
    check_prompt([1] * length, CARD, param="prompt")


@pytest.mark.parametrize("length", [100, 1000])
def test_prompt_that_fills_the_context_is_refused_with_the_sizes(length: int) -> None:
    with pytest.raises(InvalidRequest, match=rf"{length} tokens, the limit is 99") as refused:
        check_prompt([1] * length, CARD, param="prompt")

    assert refused.value.code == "context_length_exceeded"


def test_prompt_over_the_pool_is_refused_with_the_pools_limit() -> None:
    with pytest.raises(InvalidRequest, match="the limit is 48"):
        check_prompt([1] * 49, replace(CARD, max_prompt_tokens=48), param="prompt")


def test_empty_prompt_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="empty"):
        check_prompt([], CARD, param="prompt")


@pytest.mark.parametrize(
    ("asked_s", "limit_s", "expected_ms"),
    [
        (None, None, None),
        (2.5, None, 2500),
        (None, 60.0, 60_000),
        (2, 60.0, 2000),
        (90, 60.0, 60_000),
        (1e-9, None, 1),
    ],
)
def test_the_shorter_time_limit_holds(
    asked_s: float | None, limit_s: float | None, expected_ms: int | None
) -> None:
    assert timeout_ms(asked_s, limit_s) == expected_ms


def test_choices_that_could_never_wait_together_are_refused() -> None:
    """A retry was asked for that could never succeed."""
    check_choices(3, 3)

    with pytest.raises(InvalidRequest, match=r"n: 4 choices do not fit a queue of 3"):
        check_choices(4, 3)
