"""What llama.cpp's benchmarks print, and what is read from it."""

import json

import pytest

from benchmarks.peers.layout import PeerError
from benchmarks.peers.llama_bench import parse_batched_bench, parse_bench

BENCH = json.dumps(
    [
        {"n_prompt": 512, "n_gen": 0, "avg_ts": 903.0, "samples_ts": [800.0, 950.0, 960.0]},
        {"n_prompt": 0, "n_gen": 128, "avg_ts": 101.0, "samples_ts": [100.0, 102.0]},
    ]
)
BATCHED = """\
main: n_kv_max = 2560, n_batch = 2048
{"n_kv_max": 2560, "pp": 256, "tg": 64, "pl": 8, "t_pp": 2.1, "speed_pp": 975.2, "speed_tg": 261.5}
{"n_kv_max": 2560, "pp": 256, "tg": 64, "pl": 32, "t_pp": 8.4, "speed_pp": 975.2, "speed_tg": 378.1}
"""


def test_the_median_of_a_prompt_is_read() -> None:
    assert parse_bench(BENCH, 512) == 950.0


def test_a_prompt_that_was_not_measured_is_an_error() -> None:
    with pytest.raises(PeerError, match="a prompt of 256 tokens"):
        parse_bench(BENCH, 256)


def test_decode_speeds_are_read_by_streams_from_between_other_lines() -> None:
    assert parse_batched_bench(BATCHED) == {8: 261.5, 32: 378.1}
