"""What a process was started with: the environment, and the folders that it names.

The only module of the package that reads or changes the environment. Standard library only.
"""

import os
from pathlib import Path


def process_environ() -> dict[str, str]:
    """Return a copy of the environment that this process was started with."""
    return dict(os.environ)


def wait_passively() -> None:
    """Make this process' OpenMP threads sleep at barriers, unless the user chose otherwise.

    Must run before torch is loaded, which reads it once. By default threads spin, and on a machine
    with fewer cores than busy processes a spinning thread keeps the one it waits for off its core:
    with two threads on two cores and one other busy process, a step of 60 ms took over a second.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def default_data_dir() -> Path:
    """Return `chatserve` in the user's data folder, as the XDG base directory rules name it."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "share") / "chatserve"
