"""Where the time of a decode step goes, on the default model in bfloat16: a table and a picture.

    python -m benchmarks.step_profile [--batches 1 16] [--context 300] [--steps 60]
                                      [--picture docs/step-time.svg]

The engine is the one that serves, stepped in this process without gateway and store. Every request
has a prompt of `--context` tokens and decodes greedily. The library tells what each stage of the
layers took; the output head is timed around its call; what is left of a step is Python: the
scheduler, the step's tensors, the choice of tokens, text. The step with the median time is shown,
as its own parts, so that they add up.
"""

import argparse
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from chatserve.environment import wait_passively

wait_passively()  # before torch is loaded, as in the service

from torch import Tensor  # noqa: E402

from benchmarks.local_engine import EngineShape, LocalModel, load_local_model  # noqa: E402
from benchmarks.record import write_record  # noqa: E402
from benchmarks.step_chart import draw_steps  # noqa: E402
from benchmarks.stepped_engine import SteppedEngine, Work  # noqa: E402
from chatserve.engine.api import RequestId  # noqa: E402
from chatserve.engine.model_runner import ModelRunner  # noqa: E402
from chatserve.engine.runner import Runner  # noqa: E402
from chatserve.engine.scheduler import SchedulerOutput  # noqa: E402
from chatserve.kernels.cpu.layer_stack import STAGES, CpuStack  # noqa: E402
from chatserve.kernels.ops import AttentionBatch, KVPages  # noqa: E402
from chatserve.model.decoder import Decoder  # noqa: E402

HEAD, TENSORS, ENGINE = "head", "tensors, sampling", "scheduler, text"
KERNELS = (*STAGES, HEAD)
NOT_KERNELS = (TENSORS, ENGINE)
PAGE_SIZE = 16
PICTURE = Path(__file__).parents[1] / "docs" / "step-time.svg"

Seconds = dict[str, float]


class TimedDecoder:
    """Stands in front of a decoder and adds up what its kernels take.

    Owns: the seconds in the output head. Used from: the runner.
    """

    def __init__(self, decoder: Decoder):
        assert isinstance(decoder.stack, CpuStack), "only the CPU kernels can be looked into"
        self._decoder = decoder
        self._stack = decoder.stack
        self._head_s = 0.0

    def __call__(
        self,
        input_ids: Tensor,
        positions: Tensor,
        attention: AttentionBatch,
        kv: KVPages,
        rows: Tensor,
    ) -> Tensor:
        return self._decoder(input_ids, positions, attention, kv, rows)

    def compute_logits(self, hidden: Tensor) -> Tensor:
        began = time.perf_counter()
        logits = self._decoder.compute_logits(hidden)
        self._head_s += time.perf_counter() - began
        return logits

    def seconds(self) -> Seconds:
        return {**self._stack.seconds_by_stage(), HEAD: self._head_s}


class TimedRunner:
    """Passes steps on to a runner and keeps what went into the last one.

    Owns: the seconds of the last step. Used from: the engine core.
    """

    def __init__(self, runner: ModelRunner, decoder: TimedDecoder):
        self.seconds: Seconds = {}
        self._runner = runner
        self._decoder = decoder

    def execute(self, output: SchedulerOutput) -> Mapping[RequestId, int | None]:
        before, began = self._decoder.seconds(), time.perf_counter()
        sampled = self._runner.execute(output)
        run_s = time.perf_counter() - began
        kernels = {name: end - before[name] for name, end in self._decoder.seconds().items()}
        self.seconds = {**kernels, TENSORS: run_s - sum(kernels.values())}
        return sampled


@dataclass(frozen=True, slots=True)
class StepProfile:
    """One step of a batch; `seconds` by what they went into add up to the step."""

    batch_size: int
    context: int
    seconds: Seconds

    @property
    def total_s(self) -> float:
        return sum(self.seconds.values())

    @property
    def python_share(self) -> float:
        return sum(self.seconds[name] for name in NOT_KERNELS) / self.total_s


def profile_steps(model: LocalModel, batch_size: int, context: int, num_steps: int) -> StepProfile:
    """Return the median of `num_steps` steps in which `batch_size` requests decode."""
    max_tokens = num_steps + 4
    pages_each = -(-(context + max_tokens) // PAGE_SIZE)
    shape = EngineShape(batch_size * pages_each, PAGE_SIZE, prefix_cache=False)
    decoder = TimedDecoder(model.model.decoder)
    runner = TimedRunner(
        ModelRunner(
            cast(Decoder, decoder), model.pages(shape), model.ops, eos_token_ids=frozenset()
        ),
        decoder,
    )
    engine = SteppedEngine(model.scheduler(shape), cast(Runner, runner), model.tokenizer)
    engine.add(*_works(batch_size, context, max_tokens, model.model.config.vocab_size))
    while not all(engine.outputs.values()):
        engine.step()
    steps = [_time_step(engine, runner) for _ in range(num_steps)]
    steps.sort(key=lambda seconds: sum(seconds.values()))
    return StepProfile(batch_size, context, steps[num_steps // 2])


def _works(batch_size: int, context: int, max_tokens: int, vocab_size: int) -> list[Work]:
    """Return requests whose prompts have nothing in common."""
    rng = random.Random(0)
    return [
        Work(f"r{i}", [rng.randrange(vocab_size) for _ in range(context)], max_tokens)
        for i in range(batch_size)
    ]


def _time_step(engine: SteppedEngine, runner: TimedRunner) -> Seconds:
    began = time.perf_counter()
    engine.step()
    total_s = time.perf_counter() - began
    return {**runner.seconds, ENGINE: total_s - sum(runner.seconds.values())}


def print_table(profiles: Sequence[StepProfile]) -> None:
    """Print microseconds per step, a column for each batch."""
    print(f"{'':18}" + "".join(f"{f'batch {p.batch_size}':>18}" for p in profiles))
    for name in (*KERNELS, *NOT_KERNELS):
        cells = [(p.seconds[name], p.seconds[name] / p.total_s) for p in profiles]
        print(f"{name:18}" + "".join(f"{s * 1e6:9.0f} us {share:5.1%}" for s, share in cells))
    print(f"{'step':18}" + "".join(f"{p.total_s * 1e3:9.2f} ms {'':5}" for p in profiles))
    print(f"{'not kernels':18}" + "".join(f"{'':12} {p.python_share:5.1%}" for p in profiles))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--context", type=int, default=300)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    args = parser.parse_args()
    model = load_local_model("bfloat16")
    profiles = [profile_steps(model, size, args.context, args.steps) for size in args.batches]
    print_table(profiles)
    args.picture.write_text(draw_steps(profiles, KERNELS, NOT_KERNELS))
    path = write_record("step-profile", {"steps": [asdict(profile) for profile in profiles]})
    print(f"picture in {args.picture}, figures in {path}")


if __name__ == "__main__":
    main()
