"""A real service on the default model, which a test may stop, kill and start again."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

START_DEADLINE_S = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Service:
    """`chatserve serve` on the default model, on one port and with one data folder.

    Model and converted weights are those of the user's data folder, so that nothing is made twice.
    Conversations are called by their first words, so that a test knows what the list shows: when
    the model has thought of a title, and which, nobody can say before.

    Owns: its process, which may be started again after it was stopped or killed.
    Used from: one test at a time.
    """

    def __init__(self, folder: Path, default_model_path: Path) -> None:
        data_dir = default_model_path.parent.parent
        (data_dir / "weights").mkdir(exist_ok=True)
        for name in ("models", "weights"):
            (folder / name).symlink_to(data_dir / name)
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Return when it is ready."""
        command = [sys.executable, "-m", "chatserve", "serve", "--port", str(self._port)]
        command += ["--data-dir", str(self._folder), "--num-pages", "1024"]
        command += ["--titles", "words", "--log-level", "warning"]
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._await_ready(self._process)

    def stop(self) -> None:
        """End it in order, if it runs."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=60)
            self._process = None

    def command(self, *arguments: str) -> str:
        """Run `chatserve` beside it, on its data folder, and return what it prints."""
        command = [sys.executable, "-m", "chatserve", *arguments, "--data-dir", str(self._folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def kill(self) -> None:
        """End it at once; its workers, gateway and store end with it, wherever they are."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def kill_engine(self) -> None:
        """End its one engine at once, as a lack of memory would; it is started again."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in map(int, children.read_text().split()):
            if b"engine" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
                return
        raise AssertionError("there is no engine to kill")

    def _await_ready(self, process: "subprocess.Popen[bytes]") -> None:
        retries = httpx.HTTPTransport(retries=3)
        with httpx.Client(base_url=self.url, transport=retries, timeout=10) as client:
            for _ in range(START_DEADLINE_S * 5):
                assert process.poll() is None, self._log()
                try:
                    if client.get("/ready").status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                try:
                    process.wait(timeout=0.2)
                except subprocess.TimeoutExpired:
                    continue
        raise AssertionError(f"not ready within {START_DEADLINE_S} s:\n{self._log()}")

    def _log(self) -> str:
        return (self._folder / "log").read_text()
