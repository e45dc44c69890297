"""Building the CPU kernels: what is made, what is missing, what the sanitizers say."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from chatserve.kernels.cpu import build
from chatserve.kernels.cpu.build import FLAGS, LEVELS, SOURCES

CHECK_PROGRAM = Path(__file__).with_name("check_cpu_kernels.cpp")


@pytest.fixture
def compiler() -> list[str]:
    found = build.find_compiler()
    if found is None:
        pytest.skip("no C++ compiler on this machine")
    return found


def test_an_install_without_compiler_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")

    libraries = build.build(tmp_path)

    assert libraries == []
    (line,) = capfd.readouterr().err.splitlines()
    assert "CXX is 'no-such-compiler', which is not there" in line


def test_the_compiler_may_be_named_with_arguments(
    compiler: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", f"env {compiler[0]} -pipe")

    named = build.find_compiler()

    assert named is not None
    assert Path(named[0]).name == "env"
    assert named[1:] == [compiler[0], "-pipe"]


def test_the_build_runs_where_nothing_is_installed_yet(compiler: list[str]) -> None:
    process = subprocess.run(
        [sys.executable, "-I", "-S", str(build.__file__)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 0, process.stderr
    assert str(build.library_path("plain")) in process.stdout


def test_a_second_build_finds_everything_there(compiler: list[str], tmp_path: Path) -> None:
    made = [build.library_path(level, tmp_path) for level in build.levels_of(platform.machine())]
    for library in made:
        library.touch()

    assert build.build(tmp_path) == made


def test_libraries_of_other_sources_are_removed(compiler: list[str], tmp_path: Path) -> None:
    for level in LEVELS:
        build.library_path(level, tmp_path).touch()
    old = tmp_path / "plain-0123456789abcdef.so"
    old.touch()

    build.build(tmp_path)

    assert not old.exists()


def test_a_level_that_the_compiler_refuses_is_left_out(
    compiler: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(LEVELS, "plain", ("-mno-such-instructions",))
    for level in set(LEVELS) - {"plain"}:
        build.library_path(level, tmp_path).touch()

    libraries = build.build(tmp_path)

    assert build.library_path("plain", tmp_path) not in libraries
    assert "cannot build the CPU kernels for plain" in capfd.readouterr().err


def test_a_compiler_that_makes_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "true")

    libraries = build.build(tmp_path)

    assert libraries == []
    assert "cannot build the CPU kernels for plain" in capfd.readouterr().err


def test_a_machine_of_another_kind_gets_the_plain_level() -> None:
    assert build.levels_of("aarch64") == ("plain",)
    assert build.levels_of("x86_64") == ("avx512", "avx2", "plain")


@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_the_sanitizers_find_nothing(compiler: list[str], sanitizers: str, tmp_path: Path) -> None:
    flags = [*FLAGS, "-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]

    process = run_check_program([], compiler, flags, tmp_path)

    assert process.returncode == 0, process.stderr


@pytest.mark.needs_program("aarch64-linux-gnu-g++")
@pytest.mark.needs_program("qemu-aarch64")
def test_the_plain_level_computes_on_arm64(tmp_path: Path) -> None:
    process = run_check_program(
        ["qemu-aarch64"], ["aarch64-linux-gnu-g++"], [*FLAGS, "-static"], tmp_path
    )

    assert process.returncode == 0, process.stderr


def run_check_program(
    launcher: list[str], compiler: list[str], flags: list[str], folder: Path
) -> "subprocess.CompletedProcess[str]":
    """Compile the program that compares every kernel with its formula, and run it."""
    program = folder / "check"
    sources = [*sorted(SOURCES.glob("*.cpp")), CHECK_PROGRAM]
    build.compile_program(compiler, [*flags, f"-I{SOURCES}"], sources, program)
    return subprocess.run([*launcher, str(program)], capture_output=True, text=True, check=False)
