"""A real service on the default model, which a test may stop, kill and start again."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from chatserve.store.embedded_files import STORE_FOLDER, socket_url

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

    Owns: its process, which may be started again after it was stopped or killed, and further
    workers on its store.
    Used from: one test at a time.
    """

    def __init__(self, folder: Path, default_model_path: Path, *flags: str) -> None:
        data_dir = default_model_path.parent.parent
        (data_dir / "weights").mkdir(exist_ok=True)
        for name in ("models", "weights"):
            (folder / name).symlink_to(data_dir / name)
        self._folder = folder
        self._flags = flags
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Return when it is ready; one that runs goes on."""
        if self._process is None:
            serve = ["serve", "--port", str(self._port), "--titles", "words"]
            self._process = self._spawn(*serve, *self._flags)
        self._await(self._process, self._is_ready)

    def start_worker(self) -> None:
        """Start one more worker, which ends with the service, and return when it is ready."""
        before = {worker["id"] for worker in self.workers()}
        store_url = socket_url(self._folder / STORE_FOLDER)
        process = self._spawn("engine", "--redis-url", store_url, "--max-num-seqs", "1")
        self._await(process, lambda: len(self.workers()) > len(before))
        (worker_id,) = {worker["id"] for worker in self.workers()} - before
        self._workers[worker_id] = process

    def kill_busy_worker(self) -> None:
        """End the worker that computes an answer, at once."""
        assert self._process is not None
        busy: list[str] = []
        while not busy:
            busy = [worker["id"] for worker in self.workers() if worker["requests_running"] > 0]
        process = self._workers.get(busy[0])
        os.kill(_engine_of(self._process.pid) if process is None else process.pid, signal.SIGKILL)

    def workers(self) -> list[dict[str, Any]]:
        """Return what the service says of its workers."""
        overview = httpx.get(f"{self.url}/v1/chatserve/overview", timeout=10)
        workers: list[dict[str, Any]] = overview.raise_for_status().json()["workers"]
        return workers

    def forget_conversations(self) -> None:
        """Delete all conversations, and with them the answers in flight."""
        with httpx.Client(base_url=self.url, timeout=60) as client:
            for archived in ("false", "true"):
                while ids := _conversation_ids(client, archived):
                    for conversation_id in ids:
                        client.delete(f"/v1/conversations/{conversation_id}")

    def stop(self) -> None:
        """End it in order, if it runs."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=60)
            self._process = None
        self._end_workers()

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
        self._end_workers()

    def _spawn(self, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "chatserve", *arguments]
        command += ["--data-dir", str(self._folder), "--num-pages", "1024"]
        command += ["--log-level", "warning"]
        with (self._folder / "log").open("a") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _end_workers(self) -> None:
        for worker in self._workers.values():
            worker.kill()
            worker.wait()
        self._workers.clear()

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/ready", timeout=10).status_code == 200
        except httpx.TransportError:
            return False

    def _await(self, process: "subprocess.Popen[bytes]", holds: Callable[[], bool]) -> None:
        """Return once something holds for which this process must live."""
        deadline = time.monotonic() + START_DEADLINE_S
        while not holds():
            assert process.poll() is None, self._log()
            assert time.monotonic() < deadline, f"took too long:\n{self._log()}"
            time.sleep(0.2)

    def _log(self) -> str:
        return (self._folder / "log").read_text()


def _engine_of(supervisor_pid: int) -> int:
    """Return the process of the engine that `serve` has started."""
    children = Path(f"/proc/{supervisor_pid}/task/{supervisor_pid}/children").read_text().split()
    (pid,) = (
        int(child) for child in children if b"engine" in Path(f"/proc/{child}/cmdline").read_bytes()
    )
    return pid


def _conversation_ids(client: httpx.Client, archived: str) -> list[str]:
    page = client.get("/v1/chatserve/conversations", params={"archived": archived, "limit": "100"})
    return [conversation["id"] for conversation in page.raise_for_status().json()["data"]]
