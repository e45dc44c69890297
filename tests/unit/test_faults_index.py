"""Where the faults that others reported are tested, if not in a `test_faults_*.py` of their own.

There, each test names its report in the first line of its docstring. The others are listed here,
and each test that is named exists:

    report                                  test

    vllm-project/vllm#44701                 unit/test_scope_map.py
        test_names_that_look_alike_when_joined_are_different_scopes
    vllm-project/vllm#8268                  unit/test_protocol_bodies.py
        test_known_field_with_a_value_that_is_not_served_is_refused_with_the_reason
        test_wrong_completion_body_is_refused_by_name
    microsoft/chunk-attention#3             unit/test_scopes.py
        test_another_tenant_finds_nothing_of_a_prompt_and_gets_no_page_of_it
        test_another_tenant_finds_the_preamble_and_nothing_of_what_follows
    ggml-org/llama.cpp#7745                 engine/test_greedy_equals_transformers.py
        test_a_warm_cache_changes_no_token
    sgl-project/sglang#12007                unit/test_radix_tree_model.py
        TestPrefixCacheAgainstOracle
    vllm-project/vllm#45414                 unit/test_scheduler_model.py
        TestSchedulerAgainstModel
    sgl-project/sglang#31954 #31723 #33210  unit/test_waiting_line.py
        test_a_cold_request_waits_one_step_for_each_credit_that_it_has_to_compute
        test_however_many_hot_requests_come_only_the_first_of_them_pass_a_cold_one
    ggml-org/llama.cpp#3817                 gateway/test_bad_requests.py
        test_prompt_over_the_context_is_refused_with_the_sizes
    huggingface/text-generation-inference#2192  engine/test_worker.py
        test_a_worker_whose_engine_hangs_falls_silent
    ROCm/ATOM#1562                          gateway/test_disconnect.py
        test_plain_request_that_is_left_is_aborted
    ggml-org/llama.cpp#24496                gateway/test_disconnect.py
        test_plain_request_that_is_left_is_aborted
        test_stream_that_is_left_is_aborted
    InternLM/lmdeploy#1619                  gateway/test_disconnect.py
        test_clients_that_vanish_at_random_leave_every_page_free_or_cached
    ggml-org/llama.cpp#13262 #16467         gateway/test_disconnect.py
        test_stream_left_in_the_queue_is_aborted_without_being_claimed
    ggml-org/llama.cpp#25740                engine/test_worker.py
        test_the_metrics_add_up_to_the_pool
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
REPORT = re.compile(r"[\w.-]+/[\w.-]+#\d+( #\d+)*")


def names_of_tests(path: Path) -> dict[str, str]:
    """Return the names of the tests of a file, each with the first line of its docstring."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = (ast.get_docstring(node) or "").partition("\n")[0]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = ""
    return {name: line for name, line in found.items() if name.lower().startswith("test")}


def listed() -> Iterator[tuple[str, Path, str]]:
    """Yield report, file and test of the list above."""
    report, path = "", TESTS
    for line in (__doc__ or "").partition("test\n")[2].splitlines():
        words = line.strip()
        if known := REPORT.match(words):
            report, path = known[0], TESTS / words[known.end() :].strip()
        elif words:
            yield report, path, words


def test_every_test_that_is_listed_exists() -> None:
    entries = list(listed())

    missing = [entry for entry in entries if entry[2] not in names_of_tests(entry[1])]

    assert len(entries) == 18
    assert missing == []


def test_every_test_in_a_file_of_faults_names_its_report() -> None:
    files = [path for path in TESTS.glob("*/test_faults_*.py") if path != Path(__file__)]

    nameless = [
        name
        for path in files
        for name, line in names_of_tests(path).items()
        if not re.fullmatch(rf"{REPORT.pattern}: .+", line)
    ]

    assert len(files) >= 5
    assert nameless == []
