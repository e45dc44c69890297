"""The modes of `benchmarks.differential` on a tiny seeded model in float32: not one other token."""

import pytest
from engine.model_helpers import hf_configs, load, make_hf_model, write_hf_folder
from torch import Tensor

from benchmarks.comparison import Comparison, Outcome, Recording
from benchmarks.differential import Mode, compare, modes_for
from benchmarks.local_engine import LocalModel
from benchmarks.stepped_engine import Work
from chatserve.engine.api import RequestId
from chatserve.kernels import get_ops

PAGE_SIZE = 4
NUM_TOKENS = 12
SHARED = [7, 11, 13, 17, 19, 23, 29, 31, 37, 41]
PROMPTS = [
    *([*SHARED, *range(50, 50 + length)] for length in (1, 2, 3, 6, 9)),  # cuts of one another
    [*SHARED, *range(50, 53)],  # the same once more
    *([*SHARED[:edited], 99, *SHARED[edited + 1 :]] for edited in (3, 4, 9)),
    *(list(range(200, 200 + length)) for length in (1, 4, 5, 8, 30)),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    folder = tmp_path_factory.mktemp("tiny")
    write_hf_folder(make_hf_model(hf_configs()["tied"]), folder)
    return LocalModel.around(load(folder, tmp_path_factory.mktemp("weights")), get_ops("cpu"))


@pytest.fixture(scope="module")
def works() -> list[Work]:
    return [Work(f"r{index}", prompt, NUM_TOKENS) for index, prompt in enumerate(PROMPTS)]


@pytest.fixture(scope="module")
def modes(works: list[Work]) -> list[Mode]:
    return modes_for(works, batch=8, chunk=9, page_size=PAGE_SIZE)


@pytest.fixture(scope="module")
def outcomes(model: LocalModel, works: list[Work], modes: list[Mode]) -> list[Outcome]:
    return list(compare(model, works, modes))


def test_no_mode_changes_a_token(outcomes: list[Outcome]) -> None:
    assert len(outcomes) == 7
    assert [outcome.divergences for outcome in outcomes] == [[]] * len(outcomes)
    assert [outcome.num_compared for outcome in outcomes] == [len(PROMPTS) * NUM_TOKENS] * 7
    assert [outcome.failure for outcome in outcomes] == [None] * len(outcomes)
    assert max(outcome.largest_difference for outcome in outcomes) < 1e-4


def test_every_mode_did_what_its_name_says(outcomes: list[Outcome]) -> None:
    hits = {outcome.mode: outcome.num_hit_tokens for outcome in outcomes}
    preempted = {outcome.mode for outcome in outcomes if outcome.num_preemptions}

    assert {mode for mode, count in hits.items() if count} == {m for m in hits if "cache on" in m}
    assert hits["alone, cache on, again"] == sum(len(prompt) - 1 for prompt in PROMPTS)
    assert preempted == {m for m in hits if "pages" in m or "all of it" in m}
    assert {outcome.mode for outcome in outcomes if outcome.must_preempt} < preempted


def test_a_wrong_token_is_counted_and_fails_beyond_the_tolerance() -> None:
    logits = Tensor([1.0, 3.0, 2.5, *range(-30, 0)])
    recording = Recording(logits.dtype)
    recording.observe(RequestId("r"), 1, logits)
    comparison = Comparison(recording)
    within, beyond = (Outcome("m", 2, tolerance, must_preempt=False) for tolerance in (0.6, 0.5))

    for outcome in (within, beyond):
        comparison.begin(outcome)
        comparison.observe(RequestId("r"), 2, logits - Tensor([0.0, 1.0, *[0.0] * 31]))

    assert [each.margin for each in within.divergences] == [0.5]
    assert within.num_identical == 1
    assert within.largest_margin_change == 1.0
    assert within.failure is None
    assert beyond.failure == "m: 1 requests diverged beyond 0.5"


def test_a_mode_that_should_have_preempted_and_did_not_fails() -> None:
    outcome = Outcome("m", 1, 0.5, must_preempt=True)

    assert outcome.failure == "m: nothing was preempted, so nothing was shown"
