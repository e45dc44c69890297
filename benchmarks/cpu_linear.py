"""What the CPU kernels gain on linear layers, and how near they come to what the machine has.

    python -m benchmarks.cpu_linear [--cpu-level avx2] [--rows 1 16] [--repetitions 30]

The layers are those of SmolLM2-135M: 30 blocks of four and the output head, with random weights in
bfloat16, and the same in 8 and in 4 bits, whose times are also given as parts of that of bfloat16.
A repetition is one pass over the blocks, as in a step, or over the head. Torch and the
kernels take turns within one run and medians are printed, since a machine's speed drifts; so does
a sum over as much memory as the weights of the blocks take, which says what the memory can give.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from chatserve.environment import wait_passively

wait_passively()  # before torch is loaded, as in the service

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from chatserve.kernels import get_ops  # noqa: E402
from chatserve.kernels.cpu.memory import WeightMemory  # noqa: E402
from chatserve.kernels.ops import Ops, PackedLinear  # noqa: E402
from chatserve.kernels.quantized import Weight, quantize  # noqa: E402
from chatserve.kernels.torch_ops import TorchOps  # noqa: E402

NUM_BLOCKS = 30
BLOCK_SHAPES = ((960, 576), (576, 576), (3072, 576), (576, 1536))  # qkv, o, gate-up, down
HEAD_SHAPE = (49152, 576)
BYTES_PER_WEIGHT = 2


def random_weights(shapes: Sequence[tuple[int, int]]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).bfloat16() for shape in shapes]


def pack(ops: Ops, weights: Sequence[Weight], out_dtype: torch.dtype) -> list[PackedLinear]:
    return [ops.pack_linear(weight, None, out_dtype) for weight in weights]


def run_layers(layers: list[PackedLinear], inputs: list[Tensor]) -> None:
    for layer, x in zip(layers, inputs, strict=True):
        layer(x)


def time_in_turns(
    contenders: dict[str, Callable[[], object]], repetitions: int
) -> dict[str, float]:
    """Return the median seconds of each, after one call that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for repetition in range(repetitions + 1):
        for name, run in contenders.items():
            began = time.perf_counter()
            run()
            if repetition:
                times[name].append(time.perf_counter() - began)
    return {name: median(values) for name, values in times.items()}


def print_table(title: str, weights: list[Tensor], args: argparse.Namespace) -> None:
    """Measure every row count on these layers and print one line for each."""
    out_dtype = torch.float32 if len(weights) == 1 else torch.bfloat16
    num_weights = sum(weight.numel() for weight in weights)
    num_bytes = num_weights * BYTES_PER_WEIGHT
    ops = get_ops("cpu", args.cpu_level)
    packed = {
        "torch": pack(TorchOps(), weights, out_dtype),
        "kernels": pack(ops, weights, out_dtype),
        "int8": pack(ops, [quantize(weight, 8) for weight in weights], out_dtype),
        "int4": pack(ops, [quantize(weight, 4) for weight in weights], out_dtype),
    }
    memory = WeightMemory().empty(num_bytes).view(torch.float32).fill_(1.0)
    print(f"\n{title}\n")
    print(
        "| rows | torch, ms | kernels, ms | ratio | GB/s | memory, GB/s | GFLOP/s "
        "| int8, ms | of bf16 | int4, ms | of bf16 |"
    )
    print("|---:" * 11 + "|")
    for num_rows in args.rows:
        inputs = [torch.randn(num_rows, weight.shape[1]).bfloat16() for weight in weights]
        contenders: dict[str, Callable[[], object]] = {
            "memory": memory.sum,
            **{name: partial(run_layers, layers, inputs) for name, layers in packed.items()},
        }
        seconds = time_in_turns(contenders, args.repetitions)
        kernels = seconds["kernels"]
        print(
            f"| {num_rows} | {1e3 * seconds['torch']:.1f} | {1e3 * kernels:.1f} "
            f"| {seconds['torch'] / kernels:.2f} | {num_bytes / kernels / 1e9:.0f} "
            f"| {num_bytes / seconds['memory'] / 1e9:.0f} "
            f"| {2 * num_weights * num_rows / kernels / 1e9:.0f} "
            f"| {1e3 * seconds['int8']:.1f} | {seconds['int8'] / kernels:.2f} "
            f"| {1e3 * seconds['int4']:.1f} | {seconds['int4'] / kernels:.2f} |"
        )


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cpu-level", default="auto", help="as for `chatserve engine`")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 16, 32, 64, 512])
    parser.add_argument("--repetitions", type=int, default=20)
    args = parser.parse_args()
    print(f"{torch.get_num_threads()} threads, level {args.cpu_level}")
    blocks = random_weights(BLOCK_SHAPES * NUM_BLOCKS)
    print_table(f"{NUM_BLOCKS} blocks", blocks, args)
    print_table("output head", random_weights([HEAD_SHAPE]), args)


if __name__ == "__main__":
    main()
