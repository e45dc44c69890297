"""What the CPU kernels gain on attention, and what a shared prefix saves.

    python -m benchmarks.cpu_attention [--cpu-level avx2] [--repetitions 20]

The heads are those of SmolLM2-135M. A repetition is the attention of all layers of one step, each
with KV of its own, so that it comes from memory as in a step. Torch and the kernels take turns
within one run, medians are printed, and beside them what a plain sum over the same KV reads.

The second table is for sessions that share a prefix: one session, all of them, and their suffixes
alone. The last column is the time of all over that of one session and the suffixes.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from chatserve.environment import wait_passively

wait_passively()  # before torch is loaded, as in the service

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from benchmarks.cpu_linear import time_in_turns  # noqa: E402
from chatserve.kernels import get_ops  # noqa: E402
from chatserve.kernels.ops import Ops  # noqa: E402
from chatserve.kernels.torch_ops import TorchOps  # noqa: E402

NUM_LAYERS = 30
NUM_HEADS, NUM_KV_HEADS, HEAD_DIM = 9, 3, 64
PAGE_SIZE = 16
SCALE = HEAD_DIM**-0.5
PREFIX = 2000
SUFFIX = 100


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests over one pool, each of them with as many new tokens.

    Owns: the KV of all layers, [num_layers, num_pages, page_size, num_kv_heads, head_dim].
    Used from: the main thread.
    """

    k: Tensor
    v: Tensor
    page_table: Tensor  # [num_requests, max_pages], int32
    seq_lens: Tensor  # [num_requests], int32
    num_queries: int

    @property
    def num_bytes(self) -> int:
        return self.k.nbytes + self.v.nbytes

    def attend(self, ops: Ops, q: Tensor) -> None:
        """Compute the attention of one step: decode, or prefill for more than one new token."""
        starts = torch.arange(len(self.seq_lens) + 1, dtype=torch.int32) * self.num_queries
        for k, v in zip(self.k, self.v, strict=True):
            if self.num_queries == 1:
                ops.paged_decode(q, k, v, self.page_table, self.seq_lens, SCALE)
            else:
                ops.paged_prefill(q, k, v, self.page_table, self.seq_lens, starts, SCALE)


def make_requests(num: int, seq_len: int, *, shared: int = 0, num_queries: int = 1) -> Requests:
    """Return requests whose first `shared` tokens lie in the same pages."""
    num_pages = -(-seq_len // PAGE_SIZE)
    num_shared = shared // PAGE_SIZE
    own = torch.randperm(num * (num_pages - num_shared)).view(num, -1) + num_shared
    prefix = torch.arange(num_shared).expand(num, -1)
    shape = (NUM_LAYERS, num_shared + own.numel(), PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM)
    return Requests(
        k=torch.randn(shape, dtype=torch.bfloat16),
        v=torch.randn(shape, dtype=torch.bfloat16),
        page_table=torch.cat((prefix, own), dim=1).int(),
        seq_lens=torch.full((num,), seq_len, dtype=torch.int32),
        num_queries=num_queries,
    )


def contender(ops: Ops, requests: Requests) -> Callable[[], object]:
    num_tokens = len(requests.seq_lens) * requests.num_queries
    q = torch.randn(num_tokens, NUM_HEADS, HEAD_DIM, dtype=torch.bfloat16)
    return partial(requests.attend, ops, q)


def read_all(requests: Requests) -> None:
    requests.k.view(torch.float32).sum()
    requests.v.view(torch.float32).sum()


def print_against_torch(kernels: Ops, repetitions: int) -> None:
    cases = {
        **{f"decode {num} x 300": make_requests(num, 300) for num in (1, 8, 32)},
        "decode 1 x 2000": make_requests(1, 2000),
        "prefill 512": make_requests(1, 512, num_queries=512),
        "prefill 512 after 2000": make_requests(1, 2512, num_queries=512),
    }
    print("\n| attention of a step | torch, ms | kernels, ms | ratio | GB/s | memory, GB/s |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, requests in cases.items():
        seconds = time_in_turns(
            {
                "torch": contender(TorchOps(), requests),
                "kernels": contender(kernels, requests),
                "memory": partial(read_all, requests),
            },
            repetitions,
        )
        ours = seconds["kernels"]
        print(
            f"| {name} | {1e3 * seconds['torch']:.1f} | {1e3 * ours:.2f} "
            f"| {seconds['torch'] / ours:.1f} | {requests.num_bytes / ours / 1e9:.1f} "
            f"| {requests.num_bytes / seconds['memory'] / 1e9:.1f} |"
        )


def print_shared_prefix(kernels: Ops, repetitions: int) -> None:
    print(f"\nsessions with a prefix of {PREFIX} tokens and suffixes of {SUFFIX}\n")
    print(
        "| sessions | shared, ms | not shared, ms | one, ms | suffixes, ms | over one + suffixes |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    for num in (1, 8, 32):
        seq_len = PREFIX + SUFFIX
        seconds = time_in_turns(
            {
                "shared": contender(kernels, make_requests(num, seq_len, shared=PREFIX)),
                "not shared": contender(kernels, make_requests(num, seq_len)),
                "one": contender(kernels, make_requests(1, seq_len)),
                "suffixes": contender(kernels, make_requests(num, SUFFIX)),
            },
            repetitions,
        )
        others = seconds["suffixes"] * (num - 1) / num  # the one session has its own
        ratio = seconds["shared"] / (seconds["one"] + others)
        times = " | ".join(f"{1e3 * value:.2f}" for value in seconds.values())
        print(f"| {num} | {times} | {ratio:.2f} |")


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cpu-level", default="auto", help="as for `chatserve engine`")
    parser.add_argument("--repetitions", type=int, default=10)
    args = parser.parse_args()
    print(f"{torch.get_num_threads()} threads, level {args.cpu_level}")
    kernels = get_ops("cpu", args.cpu_level)
    print_against_torch(kernels, args.repetitions)
    print_shared_prefix(kernels, args.repetitions)


if __name__ == "__main__":
    main()
