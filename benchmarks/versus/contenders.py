"""Those who are measured: servers under a load, and engines alone.

Owns how each is started for its turn. Nothing outlives a turn, so that one process serves at a time
and none inherits another's caches.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.chat_load.figures import LoadFigures
from benchmarks.chat_load.run import Target, run_load
from benchmarks.peers.layout import (
    INSTALL_HINT,
    PeerError,
    PeerFolder,
    PeerModel,
    Precision,
    peer_environ,
)
from benchmarks.peers.llama_bench import decode_speeds, prefill_speed
from benchmarks.peers.random_model import write_config_folder
from benchmarks.peers.servers import (
    LlamaFlags,
    free_port,
    llama_server,
    running_peer,
    vllm_server,
)
from benchmarks.service import running_service
from benchmarks.versus import rows
from benchmarks.versus.jobs import (
    DECODE_OUTPUT_TOKENS,
    DECODE_PROMPT_TOKENS,
    DECODES,
    PREFILL_TOKENS,
    Effort,
    Job,
)

Figures = Mapping[tuple[Job, str], float]  # by job and name of the figure
BF16_FLAGS = ("--dtype", "bfloat16", "--quantization", "none")


class Contender(Protocol):
    """One side of a comparison."""

    @property
    def model(self) -> PeerModel: ...

    def missing(self) -> str | None:
        """Return what keeps it from taking part, or None."""

    def measure(self, jobs: Collection[Job], effort: Effort) -> Figures:
        """Start, measure and stop.

        Raises:
            PeerError, ServiceFailed: It did not come up, or an answer had an error.
        """


@dataclass(frozen=True, slots=True)
class OurServer:
    """chatserve with gateway, store and engine, on the user's models."""

    flags: tuple[str, ...]
    model: PeerModel = PeerModel.DEFAULT

    def missing(self) -> str | None:
        return None

    def measure(self, jobs: Collection[Job], effort: Effort) -> Figures:
        with tempfile.TemporaryDirectory(prefix="chatserve-versus-") as folder:
            flags = (*self.flags, *model_flags(self.model, Path(folder)))
            return _measure_server(running_service(free_port(), flags), jobs, effort)


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """llama.cpp's server."""

    folder: PeerFolder
    precision: Precision
    flags: LlamaFlags
    model: PeerModel = PeerModel.DEFAULT

    def missing(self) -> str | None:
        return _missing(self.folder, has_program=self.folder.has_llama, model=self.model)

    def measure(self, jobs: Collection[Job], effort: Effort) -> Figures:
        command = llama_server(self.folder, self.model, self.precision, self.flags)
        return _measure_server(running_peer(command), jobs, effort)


@dataclass(frozen=True, slots=True)
class VllmServer:
    """vLLM's server on a CPU, in bf16."""

    folder: PeerFolder
    model: PeerModel = PeerModel.DEFAULT

    def missing(self) -> str | None:
        return _missing(self.folder, has_program=self.folder.has_vllm, model=self.model)

    def measure(self, jobs: Collection[Job], effort: Effort) -> Figures:
        return _measure_server(running_peer(vllm_server(self.folder, self.model)), jobs, effort)


@dataclass(frozen=True, slots=True)
class OurEngine:
    """chatserve's engine alone, in a process of its own (`benchmarks.engine_speed`)."""

    model: PeerModel = PeerModel.DEFAULT

    def missing(self) -> str | None:
        return None

    def measure(self, jobs: Collection[Job], effort: Effort) -> Figures:
        with tempfile.TemporaryDirectory(prefix="chatserve-versus-") as folder:
            command = [sys.executable, "-m", "benchmarks.engine_speed", "--jobs", *sorted(jobs)]
            command += ["--repetitions", str(effort.repetitions)]
            command += model_flags(self.model, Path(folder))
            done = subprocess.run(
                command, env=peer_environ(), stdout=subprocess.PIPE, text=True, check=False
            )
        if done.returncode != 0:
            raise PeerError(f"benchmarks.engine_speed ended with code {done.returncode}")
        measured = json.loads(done.stdout)
        return {
            (Job(job), name): value for job in measured for name, value in measured[job].items()
        }


@dataclass(frozen=True, slots=True)
class LlamaEngine:
    """llama.cpp's engine alone, measured by its own programs."""

    folder: PeerFolder
    model: PeerModel = PeerModel.DEFAULT

    def missing(self) -> str | None:
        return _missing(self.folder, has_program=self.folder.has_llama, model=self.model)

    def measure(self, jobs: Collection[Job], effort: Effort) -> Figures:
        figures: dict[tuple[Job, str], float] = {}
        if Job.PREFILL_512 in jobs:
            speed = prefill_speed(self.folder, self.model, PREFILL_TOKENS, effort.repetitions)
            figures[Job.PREFILL_512, "tok_s"] = speed
        if decodes := [job for job in DECODES if job in jobs]:
            speeds = decode_speeds(
                self.folder,
                self.model,
                [job.num_streams for job in decodes],
                prompt_tokens=DECODE_PROMPT_TOKENS,
                output_tokens=DECODE_OUTPUT_TOKENS,
            )
            figures |= {(job, "tok_s"): speeds[job.num_streams] for job in decodes}
        return figures


def all_contenders(folder: PeerFolder, flags: LlamaFlags) -> dict[str, Contender]:
    """Return everyone by name, in the order of their turns: ours, then its peers."""
    qwen = PeerModel.QWEN_SHAPE
    return {
        rows.OURS: OurServer(BF16_FLAGS),
        rows.LLAMA: LlamaServer(folder, Precision.BF16, flags),
        rows.VLLM: VllmServer(folder),
        rows.OURS_INT8: OurServer(("--quantization", "int8")),
        rows.LLAMA_Q8_0: LlamaServer(folder, Precision.Q8_0, flags),
        rows.OURS_INT4: OurServer(("--quantization", "int4")),
        rows.LLAMA_Q4_0: LlamaServer(folder, Precision.Q4_0, flags),
        rows.ENGINE: OurEngine(),
        rows.LLAMA_ENGINE: LlamaEngine(folder),
        rows.QWEN_OURS: OurServer(BF16_FLAGS, qwen),
        rows.QWEN_LLAMA: LlamaServer(folder, Precision.BF16, flags, qwen),
        rows.QWEN_VLLM: VllmServer(folder, qwen),
        rows.QWEN_ENGINE: OurEngine(qwen),
        rows.QWEN_LLAMA_ENGINE: LlamaEngine(folder, qwen),
    }


def model_flags(model: PeerModel, folder: Path) -> tuple[str, ...]:
    """Return the flags by which chatserve takes a model; one without weights goes to `folder`."""
    if model is PeerModel.DEFAULT:
        return ()
    return ("--model", str(write_config_folder(folder)), "--load-format", "dummy")


def load_figures(measured: LoadFigures) -> dict[str, float]:
    """Return the figures of a load that rows may be about.

    Raises:
        PeerError: An answer had an error, so that the others tell nothing.
    """
    if measured.num_errors:
        raise PeerError(
            f"{measured.num_errors} of {measured.num_answers} answers failed: "
            f"{measured.first_error}"
        )
    figures = {"output_tok_s": measured.output_tok_s}
    for name, times in (("ttft", measured.ttft_ms), ("itl", measured.itl_ms)):
        if times is not None:
            figures |= {f"{name}_p50_ms": times.p50, f"{name}_p90_ms": times.p90}
    return figures


def _measure_server(
    server: AbstractContextManager[str], jobs: Collection[Job], effort: Effort
) -> Figures:
    figures: dict[tuple[Job, str], float] = {}
    with server as address:
        for job in jobs:
            measured = asyncio.run(run_load(Target(address), effort.load(job)))
            figures |= {(job, name): value for name, value in load_figures(measured).items()}
    return figures


def _missing(folder: PeerFolder, *, has_program: bool, model: PeerModel) -> str | None:
    return None if has_program and folder.has_weights(model) else INSTALL_HINT
