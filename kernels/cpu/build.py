"""Builds the CPU kernels: one shared library per feature level, with the compiler that is there.

Owns the flags of each level and the names of the files. Standard library only, and nothing of
chatserve: an install runs it as a program, before anything can be imported.

The one idea: a library is named after its level and the digest of what it was made from. One of
other sources is not found instead of misused, and building twice costs nothing.

    python kernels/cpu/build.py            builds what is missing into kernels/cpu/lib
    CXX=clang++ python kernels/cpu/build.py
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

SOURCES = Path(__file__).with_name("src")
LIBRARIES = Path(__file__).with_name("lib")

# Best first, by machine. `-march=native` would do the same, but only where it was built.
LEVELS = {
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512vnni", "-mavx512bf16"),
    "avx2": ("-mavx2", "-mfma"),
    "plain": (),
}
FLAGS = (
    "-std=c++17",
    "-O3",
    "-ffp-contract=fast",
    "-fPIC",
    "-pthread",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
)
COMPILERS = ("c++", "g++", "clang++")


def levels_of(machine: str) -> tuple[str, ...]:
    """Return the levels that a machine such as `x86_64` or `aarch64` may have, best first."""
    return tuple(LEVELS) if machine in ("x86_64", "AMD64") else ("plain",)


def library_path(level: str, folder: Path = LIBRARIES) -> Path:
    """Return where the library of a level lies, if it was built from the sources as they are."""
    digest = hashlib.sha256(repr((FLAGS, LEVELS[level])).encode())
    for source in sorted((*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h"))):
        digest.update(source.name.encode() + source.read_bytes())
    return folder / f"{level}-{digest.hexdigest()[:16]}.so"


def find_compiler() -> list[str] | None:
    """Return the command of the C++ compiler: what CXX says, else the first of the usual ones.

    As for make, CXX may hold arguments: `ccache g++`, say.
    """
    named = shlex.split(os.environ.get("CXX", ""))
    for program, *arguments in [named] if named else [[name] for name in COMPILERS]:
        if found := shutil.which(program):
            return [found, *arguments]
    return None


def compile_program(
    compiler: Sequence[str], flags: Sequence[str], sources: Sequence[Path], to: Path
) -> None:
    """Compile to a file that appears whole or not at all.

    Raises:
        subprocess.CalledProcessError: The compiler refused; its message is on standard error.
    """
    unfinished = to.with_name(f"{to.name}.{os.getpid()}.partial")
    try:
        command = [*compiler, *flags, *map(str, sources), "-o", str(unfinished)]
        subprocess.run(command, check=True)
        unfinished.replace(to)
    finally:
        unfinished.unlink(missing_ok=True)


def build(folder: Path = LIBRARIES) -> list[Path]:
    """Build what is missing and remove what is outdated; return the libraries that are there.

    A level that the compiler is too old for is left out, with the compiler's own words.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {level: library_path(level, folder) for level in levels_of(platform.machine())}
    for old in set(folder.glob("*.so")) - set(wanted.values()):
        old.unlink()
    missing = {level: path for level, path in wanted.items() if not path.exists()}
    compiler = find_compiler()
    if missing and compiler is None:
        named = os.environ.get("CXX")
        reason = f"CXX is {named!r}, which is not there" if named else "no C++ compiler found"
        print(f"{reason}: chatserve will run without its CPU kernels", file=sys.stderr)
    elif compiler is not None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(partial(_try_build_level, compiler), missing, missing.values()))
    return [path for path in wanted.values() if path.exists()]


def _try_build_level(compiler: Sequence[str], level: str, path: Path) -> None:
    flags = (*FLAGS, "-shared", *LEVELS[level])
    try:
        compile_program(compiler, flags, sorted(SOURCES.glob("*.cpp")), path)
    except (subprocess.CalledProcessError, OSError):
        print(f"{' '.join(compiler)} cannot build the CPU kernels for {level}", file=sys.stderr)


if __name__ == "__main__":
    for library in build():
        print(library)
