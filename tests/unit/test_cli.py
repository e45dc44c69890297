"""The command as a user types it: exit codes, one-line complaints, and what it does not load."""

import subprocess
import sys
from pathlib import Path

import pytest

from chatserve import __version__
from chatserve.cli import main

LISTS_HEAVY_MODULES = """
import sys
from chatserve.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
loaded = sorted({"torch", "starlette", "uvicorn", "redis", "numpy"} & set(sys.modules))
sys.exit(code or " ".join(loaded) or 0)
"""


@pytest.mark.parametrize(
    "argv",
    [["--help"], ["serve", "--help"], ["version"], ["models", "list"], ["prompt", "--help"]],
    ids=" ".join,
)
def test_quick_command_loads_neither_torch_nor_the_web_server(argv: list[str]) -> None:
    command = [sys.executable, "-c", LISTS_HEAVY_MODULES, *argv]

    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert ended.stderr == ""
    assert ended.returncode == 0


def test_version_prints_the_version_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["version"])

    assert code == 0
    assert capsys.readouterr().out == f"chatserve {__version__}\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["serve", "--port", "http"],
        ["engine", "--page-size", "3"],
        ["models", "fetch", "no-such-model"],
        ["serve", "--model", "no-such-model"],
        ["serve", "--redis-url", "nowhere"],
        [],
    ],
    ids=" ".join,
)
def test_bad_value_ends_with_one_line_and_exit_code_2(
    argv: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    code = main(argv)

    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith("chatserve: ")
    assert captured.err.count("\n") == 1


def test_models_lists_the_default_model_with_its_licence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CHATSERVE_DATA_DIR", str(tmp_path))

    code = main(["models"])

    assert code == 0
    assert "smollm2-135m-instruct  not fetched  Apache-2.0" in capsys.readouterr().out
