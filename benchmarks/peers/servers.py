"""Starts a peer's server, waits until it answers, and ends it with all its processes.

Owns the flags of each peer and the life of its processes. A server is the leader of a process group
of its own, since vLLM starts others, and a benchmark must leave none of them on the cores.
"""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.peers.layout import (
    PeerError,
    PeerFolder,
    PeerModel,
    Precision,
    num_cores,
    peer_environ,
)

_START_DEADLINE_S = 600.0  # vLLM compiles when it starts for the first time
_STOP_DEADLINE_S = 15.0
_POLL_S = 0.2
_LOG_TAIL_LINES = 20
_VLLM_KV_GIB = 2
_VLLM_MAX_MODEL_LEN = 4096


@dataclass(frozen=True, slots=True)
class LlamaFlags:
    """What of llama.cpp's server depends on the load: slots, and the sizes of its batches."""

    num_slots: int = 8
    batch: int = 2048
    micro_batch: int = 512
    context: int = 32_768  # of all slots together

    def arguments(self) -> list[str]:
        return [
            *("-np", str(self.num_slots), "-c", str(self.context)),
            *("-b", str(self.batch), "-ub", str(self.micro_batch)),
        ]


@dataclass(frozen=True, slots=True)
class PeerCommand:
    """How a server is started, but for its port."""

    arguments: tuple[str, ...]
    environ: dict[str, str]


def llama_server(
    folder: PeerFolder, model: PeerModel, precision: Precision, flags: LlamaFlags
) -> PeerCommand:
    return llama_program(
        folder,
        "llama-server",
        *("-m", str(folder.gguf(model, precision))),
        *("-t", str(num_cores()), "-tb", str(num_cores())),
        *flags.arguments(),
        "--no-webui",
    )


def llama_program(folder: PeerFolder, program: str, *arguments: str) -> PeerCommand:
    """Return how one of llama.cpp's programs is run; it finds its libraries beside itself."""
    programs = str(folder.llama_programs)
    return PeerCommand(
        (f"{programs}/{program}", *arguments), peer_environ(LD_LIBRARY_PATH=programs)
    )


def vllm_server(folder: PeerFolder, model: PeerModel) -> PeerCommand:
    return PeerCommand(
        (
            *(str(folder.vllm_venv / "bin" / "vllm"), "serve", str(folder.hf_folder(model))),
            *("--served-model-name", model, "--dtype", "bfloat16"),
            *("--max-model-len", str(_VLLM_MAX_MODEL_LEN), "--enable-prompt-tokens-details"),
        ),
        peer_environ(
            VLLM_CPU_KVCACHE_SPACE=str(_VLLM_KV_GIB),
            VLLM_CPU_OMP_THREADS_BIND=f"0-{num_cores() - 1}",
            VLLM_NO_USAGE_STATS="1",
            HF_HUB_OFFLINE="1",
        ),
    )


@contextmanager
def running_peer(command: PeerCommand, deadline_s: float = _START_DEADLINE_S) -> Iterator[str]:
    """Start a server on a free port, yield its address once it is healthy, end it.

    Raises:
        PeerError: It ended before it was healthy, or was not healthy in time; the message has the
            end of its log.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="chatserve-peer-") as name:
        log_path = Path(name) / "server.log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [*command.arguments, "--port", str(port)],
                env=command.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=name,
                start_new_session=True,
            )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_until_healthy(address, process, log_path, deadline_s)
            yield address
        finally:
            _end_group(process)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(
    address: str, process: "subprocess.Popen[bytes]", log: Path, deadline_s: float
) -> None:
    end = time.monotonic() + deadline_s
    name = Path(str(process.args[0])).name if isinstance(process.args, list) else "the server"
    while time.monotonic() < end:
        if process.poll() is not None:
            code = process.returncode
            raise PeerError(f"{name} ended with code {code} before it was ready:\n{_tail(log)}")
        try:
            if httpx.get(f"{address}/health").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(_POLL_S)
    raise PeerError(f"{name} was not ready within {deadline_s:g} s:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End the server and whatever it has started, kindly first."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_DEADLINE_S)
    with suppress(ProcessLookupError):  # nobody is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
