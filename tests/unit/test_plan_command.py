"""`chatserve plan` as a user and a program see it: table, JSON, complaints, and what it loads."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from unit.plan_helpers import SMOLLM2_135M, TWO_CORES, make_inputs

from chatserve.cli import main
from chatserve.command_line import PLAN_SETTINGS, PlanConfig
from chatserve.config import EngineConfig
from chatserve.planning.inputs import Given
from chatserve.planning.plan import make_plan
from chatserve.planning.report import as_json, as_table, log_details, log_summary
from chatserve.settings import settings_of

DOCS = Path(__file__).parents[2] / "docs" / "plan.md"
GIVEN_FIGURES = ["--dtype", "bfloat16", "--bandwidth", "10", "--throughput", "400"]
LISTS_HEAVY_MODULES = """
import sys
from chatserve.cli import main
code = main(sys.argv[1:])
sys.exit(code or " ".join({"torch", "transformers", "starlette"} & set(sys.modules)) or 0)
"""


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A folder with nothing but the default model's config.json: enough to plan for."""
    fields = {
        "model_type": "llama",
        "vocab_size": SMOLLM2_135M.vocab_size,
        "hidden_size": SMOLLM2_135M.hidden_size,
        "intermediate_size": SMOLLM2_135M.intermediate_size,
        "num_hidden_layers": SMOLLM2_135M.num_layers,
        "num_attention_heads": SMOLLM2_135M.num_heads,
        "num_key_value_heads": SMOLLM2_135M.num_kv_heads,
        "max_position_embeddings": SMOLLM2_135M.max_position_embeddings,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    }
    folder = tmp_path / "smollm2"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


@pytest.fixture
def flags(model_folder: Path, tmp_path: Path) -> list[str]:
    return ["plan", "--model", str(model_folder), "--data-dir", str(tmp_path), *GIVEN_FIGURES]


def all_keys(record: Any) -> set[str]:
    """Return the names of all fields, however deep."""
    if isinstance(record, list):
        return set().union(*(all_keys(entry) for entry in record))
    if not isinstance(record, dict):
        return set()
    return set(record).union(*(all_keys(entry) for entry in record.values()))


def test_json_has_these_fields_and_the_plan_of_the_given_figures(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*flags, "--kv-memory", "1GiB", "--json"])

    printed = json.loads(capsys.readouterr().out)
    assert code == 0
    assert list(printed) == [
        "inputs",
        "kv_bytes_per_token",
        "kv_bytes_per_page",
        "num_pages",
        "max_pinned_pages",
        "max_model_len",
        "sessions_without_sharing",
        "sessions_with_sharing",
        "max_num_seqs",
        "max_num_batched_tokens",
        "steps",
        "warnings",
    ]
    assert (printed["kv_bytes_per_token"], printed["num_pages"]) == (23_040, 2912)
    assert printed["sessions_with_sharing"] == 90
    assert printed["max_num_seqs"]["value"] == 28
    assert printed["max_num_seqs"]["bound"] == "target_itl"
    assert printed["max_num_batched_tokens"]["value"] == 320


def test_every_field_of_the_json_is_documented(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*flags, "--json"])

    documented = DOCS.read_text()
    printed = json.loads(capsys.readouterr().out)
    assert [key for key in sorted(all_keys(printed)) if f"`{key}`" not in documented] == []


def test_table_names_both_limits_with_their_reasons(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*flags, "--num-pages", "512"])

    table = capsys.readouterr().out
    assert code == 0
    assert "23,040 bytes a token" in table
    assert "8 fit the pool, 15 sharing their first 512" in table
    assert "--max-num-seqs 15\n      the pool holds 15 typical sessions" in table
    assert "--max-num-batched-tokens 304\n      15 decodes and a prefill chunk" in table


def test_table_ends_with_the_warnings() -> None:
    table = as_table(make_plan(make_inputs(given=Given(num_pages=700, max_num_seqs=25))))

    assert table.splitlines()[-1].startswith("  warning: the pool holds 20 typical sessions")


def test_table_marks_the_row_that_was_chosen() -> None:
    table = as_table(make_plan(make_inputs()))

    marked = [line for line in table.splitlines() if line.endswith("  <- --max-num-seqs")]
    assert [line.split()[0] for line in marked] == ["28"]


def test_table_and_log_claim_no_sharing_without_a_prefix_cache() -> None:
    plan = make_plan(make_inputs(prefix_cache=False))

    for text in (as_table(plan), log_summary(plan), *log_details(plan)):
        assert "sharing" not in text
        assert "pinned" not in text


def test_speeds_in_json_are_rounded() -> None:
    speed = replace(TWO_CORES, bandwidth_gb_per_s=10.123456)

    printed = json.loads(as_json(make_plan(make_inputs(speed=speed))))

    assert printed["inputs"]["speed"]["bandwidth_gb_per_s"] == 10.123


def test_log_sums_up_the_limits_in_one_line() -> None:
    assert log_summary(make_plan(make_inputs())) == (
        "limits: 28 requests, 320 tokens a step, 2,912 pages, 1,456 of them may be pinned; "
        "planned with the figures of this start, 10.0 GB/s of weights and 400 GFLOP/s: "
        "`chatserve plan` explains"
    )


def test_log_names_no_speed_where_none_was_asked_for() -> None:
    given = Given(num_pages=512, max_num_seqs=8, max_num_batched_tokens=64)

    assert "figures" not in log_summary(make_plan(make_inputs(given=given, speed=None)))


def test_log_details_say_the_reasons_and_the_inputs() -> None:
    estimate, inputs = log_details(make_plan(make_inputs()))

    assert estimate.startswith("plan: --max-num-seqs 28: 28 fit a step within 100 ms, the wanted")
    assert estimate.endswith("a step is predicted to take 29.5 ms for one request, 99.0 ms for all")
    assert "KV 23,040 bytes a token" in inputs
    assert "reads 10.0 GB/s of weights" in inputs


def test_log_predicts_nothing_where_no_speed_was_asked_for() -> None:
    given = Given(num_pages=512, max_num_seqs=8, max_num_batched_tokens=64)

    estimate, inputs = log_details(make_plan(make_inputs(given=given, speed=None)))

    assert estimate == ("plan: --max-num-seqs 8: given; --max-num-batched-tokens 64: given")
    assert "GB/s" not in inputs


def test_given_figures_and_dtype_need_no_torch(flags: list[str]) -> None:
    command = [sys.executable, "-c", LISTS_HEAVY_MODULES, *flags]

    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert ended.stderr == ""
    assert ended.returncode == 0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--max-model-len", "9000"], "--max-model-len 9000: the model's context is 8192 tokens"),
        (["--kv-memory", "5000"], "one page needs 368,640 bytes"),
        (["--target-itl", "0"], "--target-itl (CHATSERVE_TARGET_ITL): must be from 0.1"),
        (["--bandwidth", "fast"], "expected a number, got 'fast'"),
        (["--session-tokens", "100", "--shared-tokens", "100"], "leaves nothing of"),
        (["--redis-url", "redis://localhost"], "unrecognized arguments: --redis-url"),
        (["--model", "no-such-model"], "is no file, no folder and none of: smollm2"),
        (["--model", "smollm2-135m-instruct"], "`chatserve models fetch smollm2-135m-instruct`"),
    ],
)
def test_what_cannot_be_planned_is_one_line(
    extra: list[str], message: str, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*flags, *extra])

    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_every_plan_setting_is_a_setting() -> None:
    known = {declared.name for declared, _ in settings_of(EngineConfig, PlanConfig)}

    assert [name for name in PLAN_SETTINGS if name not in known] == []
