"""Runs llama.cpp's own benchmarks of its engine, without a server, and reads what they print.

Owns the two formats: llama-bench prints a JSON list, llama-batched-bench a JSON object a line
between other lines.
"""

import json
import subprocess
from collections.abc import Sequence
from statistics import median

from benchmarks.peers.layout import PeerError, PeerFolder, PeerModel, Precision, num_cores
from benchmarks.peers.servers import llama_program

_LOG_TAIL_LINES = 15


def prefill_speed(folder: PeerFolder, model: PeerModel, num_tokens: int, repetitions: int) -> float:
    """Return how many tokens per second a prompt of `num_tokens` is computed at, in bf16."""
    output = _run(
        folder,
        "llama-bench",
        *("-m", str(folder.gguf(model, Precision.BF16)), "-t", str(num_cores())),
        *("-p", str(num_tokens), "-n", "0", "-r", str(repetitions), "-o", "json"),
    )
    return parse_bench(output, num_tokens)


def decode_speeds(
    folder: PeerFolder,
    model: PeerModel,
    streams: Sequence[int],
    *,
    prompt_tokens: int,
    output_tokens: int,
) -> dict[int, float]:
    """Return how many tokens per second so many streams decode at, all of them together."""
    context = max(streams) * (prompt_tokens + output_tokens)
    output = _run(
        folder,
        "llama-batched-bench",
        *("-m", str(folder.gguf(model, Precision.BF16)), "-t", str(num_cores())),
        *("-tb", str(num_cores()), "-c", str(context), "-npp", str(prompt_tokens)),
        *("-ntg", str(output_tokens), "-npl", ",".join(map(str, streams))),
        *("--output-format", "jsonl"),
    )
    speeds = parse_batched_bench(output)
    if missing := set(streams) - set(speeds):
        raise PeerError(f"llama-batched-bench printed nothing for {sorted(missing)} streams")
    return speeds


def parse_bench(output: str, num_tokens: int) -> float:
    """Return the median speed of a prompt of `num_tokens` from llama-bench's JSON."""
    for test in json.loads(output):
        if test["n_prompt"] == num_tokens and test["n_gen"] == 0:
            return float(median(test["samples_ts"]))
    raise PeerError(f"llama-bench printed nothing for a prompt of {num_tokens} tokens")


def parse_batched_bench(output: str) -> dict[int, float]:
    """Return decode speeds by number of streams from llama-batched-bench's lines."""
    rows = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    return {int(row["pl"]): float(row["speed_tg"]) for row in rows}


def _run(folder: PeerFolder, program: str, *arguments: str) -> str:
    command = llama_program(folder, program, *arguments)
    done = subprocess.run(
        command.arguments, env=command.environ, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        tail = "\n".join(done.stderr.splitlines()[-_LOG_TAIL_LINES:])
        raise PeerError(f"{program} ended with code {done.returncode}:\n{tail}")
    return done.stdout
