"""Servers that are started and ended for a benchmark."""

import os
import sys
from pathlib import Path

import httpx
import pytest

from benchmarks.peers.layout import PeerError, PeerFolder, PeerModel, Precision
from benchmarks.peers.servers import (
    LlamaFlags,
    PeerCommand,
    llama_server,
    running_peer,
    vllm_server,
)

# Answers every GET with 200; before that, starts a child that keeps a pipe open while it lives.
HEALTHY = """
import http.server, os, sys
if os.fork() == 0:
    pipe = os.open(os.environ["PIPE"], os.O_WRONLY)
    os.read(os.pipe()[0], 1)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""
BROKEN = "import sys; print('no such model'); sys.exit(3)"


def a_command(program: str, **environ: str) -> PeerCommand:
    return PeerCommand((sys.executable, "-c", program), {**os.environ, **environ})


def test_a_server_and_all_that_it_started_are_gone_afterwards(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with running_peer(a_command(HEALTHY, PIPE=str(pipe))) as address, pipe.open("rb") as held_open:
        assert httpx.get(address).status_code == 200
        held = held_open.fileno()
        kept = os.dup(held)

    assert os.read(kept, 1) == b""  # blocks for as long as the child lives
    os.close(kept)
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)


def test_a_server_that_does_not_come_up_shows_its_log() -> None:
    with (
        pytest.raises(PeerError, match=r"code 3 before it was ready:\nno such model"),
        running_peer(a_command(BROKEN)),
    ):
        pass


def test_a_server_that_is_not_healthy_in_time_is_given_up() -> None:
    silent = a_command("import os; os.read(os.pipe()[0], 1)")

    with (
        pytest.raises(PeerError, match="was not ready within 0 s"),
        running_peer(silent, deadline_s=0.0),
    ):
        pass


def test_llama_serves_with_the_swept_flags() -> None:
    folder = PeerFolder(Path("peers"))

    command = llama_server(
        folder, PeerModel.DEFAULT, Precision.Q8_0, LlamaFlags(num_slots=4, micro_batch=128)
    )

    line = " ".join(command.arguments)
    assert "-m peers/smollm2-q8_0.gguf" in line
    assert "-np 4 -c 32768 -b 2048 -ub 128" in line


def test_peers_choose_their_threads_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")

    command = vllm_server(PeerFolder(Path("peers")), PeerModel.QWEN_SHAPE)

    assert "OMP_WAIT_POLICY" not in command.environ
    assert command.environ["VLLM_CPU_OMP_THREADS_BIND"].startswith("0-")
