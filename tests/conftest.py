"""What tests of every kind share: where the default model is, what they may need, what was skipped.

A test that needs a program or the default model says so, and is skipped with that as its reason
where it is missing. At the end the reasons are listed with their counts, so that a run in which
much was skipped does not look like one in which all went well.
"""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from chatserve.command_line import load_config
from chatserve.config import DEFAULT_MODEL, EngineConfig
from chatserve.environment import wait_passively
from chatserve.errors import ConfigError
from chatserve.model.catalog import resolve_model

# The machines that run the tests are small, and several processes share them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
wait_passively()

# How long an example takes is the business of benchmarks.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Without a GPU Triton's kernels run in its interpreter, which must be chosen before anything
# imports Triton; transformers does, in tests that have nothing to do with it.
if shutil.which("nvidia-smi") is None:
    os.environ["TRITON_INTERPRET"] = "1"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs_program(*names): skip where none of these programs is on the PATH"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs_program"):
        if not any(shutil.which(name) for name in marker.args):
            pytest.skip(f"no {' or '.join(marker.args)} on this machine")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section("skipped, and why")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:5} {reason}")


@pytest.fixture(scope="session")
def default_model_path() -> Path:
    """The default model's file, from where `chatserve models fetch` puts it."""
    config = load_config(["engine"], os.environ)
    assert isinstance(config, EngineConfig)
    try:
        return resolve_model(DEFAULT_MODEL, config.data_dir)
    except ConfigError:
        pytest.skip("the default model has not been fetched (chatserve models fetch)")
