"""The result of one benchmark on disk: the figures, and what they were measured on.

Owns the file's name and the facts that every result states: date, commit, machine and command.
"""

import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def write_record(name: str, figures: dict[str, Any]) -> Path:
    """Write `figures` to `results/<name>-<date>.json` and return that path."""
    date = time.strftime("%Y-%m-%d")
    record = {
        "date": date,
        "commit": _commit(),
        "machine": _machine(),
        "command": " ".join(["python", *sys.orig_argv[1:]]),
        **figures,
    }
    path = RESULTS / f"{name}-{date}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def _commit() -> str:
    """Return the commit, with a plus sign if files that git follows differ from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        cwd=RESULTS,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": version("torch"),
    }


def _processor() -> str:
    """Return the processor's name where Linux tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
