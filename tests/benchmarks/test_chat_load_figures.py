"""How the answers of a load are summed up."""

import pytest

from benchmarks.chat_load.clients import Answer
from benchmarks.chat_load.figures import LoadFigures, Percentiles


def an_answer(stamps_s: list[float], error: str = "") -> Answer:
    return Answer(
        max_tokens=3, began_s=1.0, stamps_s=stamps_s, prompt_tokens=10, output_tokens=3, error=error
    )


def test_times_count_from_the_request_to_pieces_of_text() -> None:
    figures = LoadFigures.of([an_answer([1.5, 1.6, 1.9])], seconds=2.0)

    assert figures.ttft_ms == Percentiles(500.0, 500.0, 500.0)
    assert figures.itl_ms == Percentiles(300.0, 300.0, 300.0)
    assert figures.e2e_ms == Percentiles(900.0, 900.0, 900.0)
    assert figures.output_tok_s == 1.5


def test_a_failed_answer_is_in_no_figure_but_the_errors() -> None:
    answers = [an_answer([2.0]), an_answer([1.001], error="broken off")]

    figures = LoadFigures.of(answers, seconds=1.0)

    assert (figures.num_answers, figures.num_errors) == (2, 1)
    assert figures.first_error == "broken off"
    assert (figures.output_tokens, figures.prompt_tokens) == (3, 10)
    assert figures.ttft_ms == Percentiles(1000.0, 1000.0, 1000.0)


def test_without_a_good_answer_there_are_no_times() -> None:
    figures = LoadFigures.of([an_answer([], error="refused")], seconds=1.0)

    assert (figures.ttft_ms, figures.itl_ms, figures.output_tok_s) == (None, None, 0.0)


def test_percentiles_go_by_rank() -> None:
    times = Percentiles.of_seconds([number / 1e3 for number in range(100, 0, -1)])

    assert times == Percentiles(p50=51.0, p90=91.0, p99=100.0)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(2, stamps_s=[1.0], output_tokens=2), "the stream ended before the answer did"),
        (
            Answer(2, stamps_s=[1.0], output_tokens=1, is_finished=True),
            "1 tokens instead of 2",
        ),
        (Answer(2, output_tokens=2, is_finished=True), "an answer without text"),
        (Answer(2, stamps_s=[1.0], output_tokens=2, is_finished=True), ""),
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(answer: Answer, error: str) -> None:
    answer.check()

    assert answer.error == error
