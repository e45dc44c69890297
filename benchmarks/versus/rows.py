"""The rows of the table: what is compared with what, and how much is wanted.

Owns titles and targets. Knows no server; a side is a contender's name and one of its figures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.versus.jobs import Job

OURS, OURS_INT8, OURS_INT4 = "chatserve bf16", "chatserve int8", "chatserve int4"
LLAMA, LLAMA_Q8_0, LLAMA_Q4_0 = "llama.cpp BF16", "llama.cpp Q8_0", "llama.cpp Q4_0"
VLLM = "vLLM"
ENGINE, LLAMA_ENGINE = "chatserve engine", "llama.cpp engine"
QWEN_OURS, QWEN_LLAMA, QWEN_VLLM = "chatserve bf16, 0.5B", "llama.cpp BF16, 0.5B", "vLLM, 0.5B"
QWEN_ENGINE, QWEN_LLAMA_ENGINE = "chatserve engine, 0.5B", "llama.cpp engine, 0.5B"

_DEFAULT, _QWEN = "", "0.5B: "


class Side(NamedTuple):
    """One contender's figure of one job."""

    contender: str
    job: Job
    figure: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: ours over the best of its peers, and what the ratio should reach.

    `key` is what `--rows` takes; rows of one job share it. Times are better when they are lower,
    and then the target is the most that the ratio may be.
    """

    key: str
    title: str
    unit: str
    ours: Side
    peers: tuple[Side, ...]
    target: float

    @property
    def is_time(self) -> bool:
        return self.unit == "ms"

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.ours, *self.peers)


@dataclass(frozen=True, slots=True)
class _Servers:
    """The three servers of one model, and how its rows are marked."""

    mark: str
    ours: str
    llama: str
    vllm: str


_SERVERS = _Servers(_DEFAULT, OURS, LLAMA, VLLM)
_QWEN_SERVERS = _Servers(_QWEN, QWEN_OURS, QWEN_LLAMA, QWEN_VLLM)


def all_rows() -> list[Row]:
    """Return the rows in the order in which they are printed."""
    return [
        *_shared_system(_SERVERS),
        _ttft(_SERVERS, Job.WARM_TTFT, 0.6),
        _ttft(_SERVERS, Job.BURST, 0.7),
        _single("single", "single stream, bf16", OURS, LLAMA),
        _single("single-int8", "single stream, int8", OURS_INT8, LLAMA_Q8_0),
        _single("single-int4", "single stream, int4", OURS_INT4, LLAMA_Q4_0),
        _engine("prefill", "prefill of 512 tokens", ENGINE, LLAMA_ENGINE, (Job.PREFILL_512, 1.5)),
        _engine("decode", "decode, 8 streams", ENGINE, LLAMA_ENGINE, (Job.DECODE_8, 2.0)),
        _engine("decode", "decode, 32 streams", ENGINE, LLAMA_ENGINE, (Job.DECODE_32, 2.5)),
        _step("decode step at batch 1", Job.STEP_1, 1.25),
        _step("decode step at batch 16", Job.STEP_16, 1.5),
        *_shared_system(_QWEN_SERVERS),
        _single("qwen-single", f"{_QWEN}single stream, bf16", QWEN_OURS, QWEN_LLAMA),
        _engine(
            "qwen-prefill",
            f"{_QWEN}prefill of 512 tokens",
            QWEN_ENGINE,
            QWEN_LLAMA_ENGINE,
            (Job.PREFILL_512, 1.5),
        ),
    ]


def _shared_system(servers: _Servers) -> Iterator[Row]:
    key = "qwen-shared-system" if servers.mark else "shared-system"
    job, title = Job.SHARED_SYSTEM, f"{servers.mark}shared system prompts"
    for peer, target in ((servers.vllm, 2.2), (servers.llama, 3.5)):
        sides = [Side(name, job, "output_tok_s") for name in (servers.ours, peer)]
        yield Row(key, f"{title}, output", "tokens/s", sides[0], (sides[1],), target)
    for rank, target in (("p50", 0.5), ("p90", 0.35)):
        names = (servers.ours, servers.vllm, servers.llama)
        ours, *peers = (Side(name, job, f"ttft_{rank}_ms") for name in names)
        yield Row(key, f"{title}, TTFT {rank}", "ms", ours, tuple(peers), target)


def _ttft(servers: _Servers, job: Job, target: float) -> Row:
    titles = {Job.WARM_TTFT: "new session, warm prompt", Job.BURST: "burst on a new prompt"}
    names = (servers.ours, servers.vllm, servers.llama)
    ours, *peers = (Side(name, job, "ttft_p50_ms") for name in names)
    return Row(job.value, f"{titles[job]}, TTFT p50", "ms", ours, tuple(peers), target)


def _single(key: str, title: str, ours: str, peer: str) -> Row:
    sides = [Side(name, Job.SINGLE, "output_tok_s") for name in (ours, peer)]
    return Row(key, title, "tokens/s", sides[0], (sides[1],), 1.1)


def _engine(key: str, title: str, ours: str, peer: str, wanted: tuple[Job, float]) -> Row:
    job, target = wanted
    sides = [Side(name, job, "tok_s") for name in (ours, peer)]
    return Row(key, f"{title}, bf16, engine alone", "tokens/s", sides[0], (sides[1],), target)


def _step(title: str, job: Job, target: float) -> Row:
    ours, bound = Side(ENGINE, job, "step_ms"), Side(ENGINE, job, "bound_ms")
    return Row("step", f"{title}, bf16, engine alone", "ms", ours, (bound,), target)
