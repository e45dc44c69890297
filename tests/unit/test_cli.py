"""The command as a user types it: exit codes, one-line complaints, and what it does not load."""

import os
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


def test_model_that_cannot_be_fetched_is_not_called_a_flag(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["models", "fetch", "no-such-model"])

    complaint = capsys.readouterr().err
    assert code == 2
    assert "'no-such-model'" in complaint
    assert "--model" not in complaint


@pytest.mark.parametrize(
    ("argv", "flags", "others"),
    [
        (["tenant", "show", "--help"], ["--json", "--redis-url"], ["--models", "--yes"]),
        (["tenant", "set", "acme", "-h"], ["--models", "--connections"], ["--yes"]),
        (["key", "rotate", "--help"], ["--grace", "--quiet"], ["--user", "--role"]),
        (["prompt", "unpin", "--help"], ["--ttl"], ["--file", "--variable"]),
        (["key", "--help"], ["--grace", "--user"], []),
    ],
    ids=str,
)
def test_help_for_an_action_shows_the_flags_that_it_takes(
    argv: list[str], flags: list[str], others: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(argv)

    text = capsys.readouterr().out
    assert [flag for flag in flags if flag not in text] == []
    assert [flag for flag in others if flag in text] == []


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


# ── Standard streams that somebody else closed ───────────────────────────────────────────────


def run_in_shell(line: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which "$@" stands for `chatserve`, buffered as for a user."""
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "chatserve"]
    variables = {**os.environ, "PYTHONUNBUFFERED": "", **environ}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=variables
    )


@pytest.mark.parametrize("arguments", ["version", "models list", "prompt --help"])
def test_reader_that_has_enough_ends_the_command_quietly(arguments: str) -> None:
    ended = run_in_shell(f'exec 3> >(true); wait $!; "$@" {arguments} >&3')

    assert ended.stderr == ""
    assert ended.returncode == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["version", "models list", "--help"])
def test_full_disk_is_told_in_one_line(arguments: str, unbuffered: str) -> None:
    ended = run_in_shell(f'"$@" {arguments} >/dev/full', PYTHONUNBUFFERED=unbuffered)

    assert ended.stderr == "chatserve: cannot write: No space left on device\n"
    assert ended.returncode == 1


@pytest.mark.parametrize("arguments", ["version", "models list", "prompt list"])
def test_closed_standard_output_is_told_in_one_line(arguments: str) -> None:
    ended = run_in_shell(f'"$@" {arguments} >&-')

    assert ended.stderr == "chatserve: the standard output is closed\n"
    assert ended.returncode == 1


def test_closed_standard_input_is_told_in_one_line() -> None:
    ended = run_in_shell('"$@" prompt add support --file - <&-')

    assert ended.stderr == "chatserve: --file: the standard input is closed\n"
    assert ended.returncode == 2
