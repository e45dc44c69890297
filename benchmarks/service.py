"""A service of its own for one benchmark: started, asked, stopped.

Owns the process and its address. The data folder is the user's, so that the model is there already;
the store is a bundled one in a folder of the benchmark's.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from chatserve.environment import default_data_dir

START_DEADLINE_S = 120.0


class ServiceFailed(SystemExit):
    """The service did not become ready: ends the benchmark with this message unless caught."""


@contextmanager
def running_service(port: int, flags: Sequence[str] = ()) -> Iterator[str]:
    """Start `chatserve serve` on `port`, yield its address once it is ready, stop it."""
    with tempfile.TemporaryDirectory(prefix="chatserve-bench-") as folder:
        share_models(Path(folder))
        command = [sys.executable, "-m", "chatserve", "serve", "--port", str(port)]
        command += ["--data-dir", folder, "--log-level", "warning", *flags]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_until_ready(address, process)
            yield address
        finally:
            process.terminate()
            process.wait()


def share_models(folder: Path) -> None:
    """Let a data folder have the user's models and converted weights."""
    for name in ("models", "weights"):
        shared = default_data_dir() / name
        shared.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(shared)


def _wait_until_ready(address: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServiceFailed(f"the service ended with code {process.returncode}, not ready yet")
        try:
            if httpx.get(f"{address}/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise ServiceFailed(f"the service was not ready within {START_DEADLINE_S:g} s")
