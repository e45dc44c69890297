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

from chatserve.config import default_data_dir

START_DEADLINE_S = 120.0


@contextmanager
def running_service(port: int, flags: Sequence[str] = ()) -> Iterator[str]:
    """Start `chatserve serve` on `port`, yield its address once it is ready, stop it."""
    with tempfile.TemporaryDirectory(prefix="chatserve-bench-") as folder:
        for name in ("models", "weights"):
            shared = default_data_dir() / name
            shared.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).symlink_to(shared)
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


def _wait_until_ready(address: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"the service ended with code {process.returncode} before it was ready")
        try:
            if httpx.get(f"{address}/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    sys.exit(f"the service was not ready within {START_DEADLINE_S:g} s")
