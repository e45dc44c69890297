"""The speed of the engine alone, in bfloat16 and without gateway and store, as one line of JSON.

    python -m benchmarks.engine_speed --jobs prefill-512 decode-8 step-1 [--model FOLDER]

Prompts are random tokens. `prefill-512` times a step that computes a prompt. `decode-N` times the
steps in which N requests decode, each with a prompt of its own, as llama-batched-bench does it.
`step-N` takes the median of such steps and sets what the machine could do beside it, sampled
between the steps (`machine_bound`): the bytes are those of all weights and of the batch's KV, the
operations those of all matrix products and of attention.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from statistics import median

import torch

from benchmarks.local_engine import DEVICE, EngineShape, LocalModel
from benchmarks.machine_bound import MachineBound
from benchmarks.stepped_engine import SteppedEngine, Work
from benchmarks.versus.jobs import (
    DECODE_OUTPUT_TOKENS,
    DECODE_PROMPT_TOKENS,
    PREFILL_TOKENS,
    STEPS,
    Job,
)
from chatserve.config import DEFAULT_MODEL, EngineConfig
from chatserve.engine.model_source import load_configured
from chatserve.kernels import get_ops
from chatserve.planning.machine import one_pool

_PAGE_SIZE = 16
_NUM_STEPS = 40  # of which the median is taken
_MIN_PREFILLS = 5
_LONGEST_WAIT = 64  # decode steps that the first request may take until the last has its prompt
_FIGURES_DIGITS = 4


def measure(local: LocalModel, job: Job, repetitions: int, num_threads: int) -> dict[str, float]:
    """Return the figures of one job."""
    if job is Job.PREFILL_512:
        return {"tok_s": prefill_speed(local, max(_MIN_PREFILLS, repetitions))}
    if job in STEPS:
        return step_times(local, job.num_streams, num_threads)
    speeds = [decode_speed(local, job.num_streams) for _ in range(repetitions)]
    return {"tok_s": median(speeds)}


def prefill_speed(local: LocalModel, repetitions: int) -> float:
    """Return tokens per second of a prompt of 512 tokens in one step, the first not counted."""
    pages_each = PREFILL_TOKENS // _PAGE_SIZE + 1
    engine = local.engine(EngineShape((repetitions + 2) * pages_each, _PAGE_SIZE))
    times: list[float] = []
    for number, prompt in zip(range(repetitions + 1), _prompts(local), strict=False):
        engine.add(Work(f"prompt-{number}", prompt[:PREFILL_TOKENS], 1))
        times.append(_timed_step(engine))
    return PREFILL_TOKENS / median(times[1:])


def decode_speed(local: LocalModel, num_streams: int) -> float:
    """Return tokens per second of so many streams together, over 64 tokens of each."""
    engine = decoding_engine(local, num_streams)
    began = time.perf_counter()
    for _ in range(DECODE_OUTPUT_TOKENS):
        engine.step()
    return num_streams * DECODE_OUTPUT_TOKENS / (time.perf_counter() - began)


def step_times(local: LocalModel, num_streams: int, num_threads: int) -> dict[str, float]:
    """Return a decode step's median time and the machine's bound for it, both in milliseconds."""
    engine = decoding_engine(local, num_streams)
    bound = MachineBound(local.ops, local.model.weight_bytes, num_threads)
    times: list[float] = []
    for _ in range(_NUM_STEPS):
        times.append(_timed_step(engine))
        bound.sample()
    context = DECODE_PROMPT_TOKENS + _NUM_STEPS // 2
    step_bytes, operations = step_costs(local, num_streams, context)
    return {
        "step_ms": 1e3 * median(times),
        "bound_ms": 1e3 * bound.seconds(step_bytes, operations),
        "read_gb_s": bound.bytes_per_s / 1e9,
        "peak_gflop_s": bound.operations_per_s / 1e9,
    }


def step_costs(local: LocalModel, num_streams: int, context: int) -> tuple[int, int]:
    """Return the bytes that a decode step must read and the operations that it must do."""
    config, weight_bytes = local.model.config, local.model.weight_bytes
    kv_tokens = num_streams * context
    num_weights = weight_bytes // local.dtype.itemsize
    # For each token of KV, a query head takes a dot product with the key and adds the value.
    attention = 4 * config.num_layers * config.num_heads * config.head_dim * kv_tokens
    num_bytes = weight_bytes + kv_tokens * config.kv_bytes_per_token(local.dtype.itemsize)
    return num_bytes, 2 * num_weights * num_streams + attention


def decoding_engine(local: LocalModel, num_streams: int) -> SteppedEngine:
    """Return an engine in which so many requests have their prompts computed, and one step more."""
    longest = DECODE_PROMPT_TOKENS + DECODE_OUTPUT_TOKENS + _LONGEST_WAIT
    pages_each = longest // _PAGE_SIZE + 1
    engine = local.engine(EngineShape(num_streams * pages_each + 1, _PAGE_SIZE))
    prompts = zip(range(num_streams), _prompts(local), strict=False)
    works = [
        Work(f"stream-{number}", prompt[:DECODE_PROMPT_TOKENS], longest - DECODE_PROMPT_TOKENS)
        for number, prompt in prompts
    ]
    engine.add(*works)
    while not all(engine.outputs.values()):
        engine.step()
    engine.step()
    return engine


def _prompts(local: LocalModel) -> Iterator[list[int]]:
    """Yield prompts that have nothing in common, as long as the longest job needs."""
    rng = random.Random(0)
    while True:
        yield rng.choices(range(local.model.config.vocab_size), k=PREFILL_TOKENS)


def _timed_step(engine: SteppedEngine) -> float:
    began = time.perf_counter()
    engine.step()
    return time.perf_counter() - began


def _load(model: str, load_format: str) -> LocalModel:
    """Load as the service does with `--quantization none --dtype bfloat16`."""
    config = EngineConfig(
        model=model, load_format=load_format, dtype="bfloat16", quantization="none"
    )
    ops = get_ops(DEVICE)
    local = LocalModel.around(load_configured(config, torch.bfloat16, ops), ops)
    one_pool(ops, torch.bfloat16)
    return local


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    alone = [job.value for job in Job if job.value[-1].isdigit()]
    parser.add_argument("--jobs", nargs="+", choices=alone, default=alone)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="as for `chatserve engine`")
    parser.add_argument("--load-format", default="auto", help="as for `chatserve engine`")
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    num_threads = torch.get_num_threads()
    local = _load(args.model, args.load_format)
    figures = {job: measure(local, Job(job), args.repetitions, num_threads) for job in args.jobs}
    rounded = {
        job: {name: float(f"{value:.{_FIGURES_DIGITS}g}") for name, value in each.items()}
        for job, each in figures.items()
    }
    print(json.dumps(rounded))


if __name__ == "__main__":
    main()
