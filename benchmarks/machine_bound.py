"""What this machine could do a step in, if nothing but its memory and its multipliers counted.

Owns the two measurements. Reading is a sum over as much memory as the weights take, in the same
kind of pages. Multiplying is a product of matrices that stay in the caches, by torch and by our own
kernels, of which the faster counts. Whoever measures a step takes samples between its repetitions,
since a machine's speed drifts.
"""

import time
from collections.abc import Callable
from statistics import median

import torch

from chatserve.kernels.cpu.memory import WeightMemory
from chatserve.kernels.ops import Ops

_ROWS, _OUT, _IN = 512, 1536, 576  # 1.8 MB of weights, which a core's second cache holds
_OPERATIONS = 2 * _ROWS * _OUT * _IN


class MachineBound:
    """Samples how fast memory is read and matrices are multiplied, on `num_threads` threads.

    Torch has those threads during a sample only; where the kernels compute, it works with one.

    Owns: the memory that is read, and the samples.
    Used from: the thread that drives the engine.
    """

    def __init__(self, ops: Ops, read_bytes: int, num_threads: int):
        self._num_threads = num_threads
        whole = read_bytes // 4 * 4
        self._memory = WeightMemory().empty(whole).view(torch.float32).fill_(1.0)
        weight, x = (torch.randn(rows, _IN).bfloat16() for rows in (_OUT, _ROWS))
        kernel = ops.pack_linear(weight, None, torch.bfloat16)
        self._multipliers: tuple[Callable[[], object], ...] = (
            lambda: torch.mm(x, weight.T),
            lambda: kernel(x),
        )
        self._reads_s: list[float] = []
        self._multiplications_s: list[list[float]] = [[] for _ in self._multipliers]

    def sample(self) -> None:
        usual = torch.get_num_threads()
        torch.set_num_threads(self._num_threads)
        self._reads_s.append(_second_call_s(self._memory.sum))
        for times, multiply in zip(self._multiplications_s, self._multipliers, strict=True):
            times.append(_second_call_s(multiply))
        torch.set_num_threads(usual)

    @property
    def bytes_per_s(self) -> float:
        return self._memory.nbytes / median(self._reads_s)

    @property
    def operations_per_s(self) -> float:
        return _OPERATIONS / min(median(times) for times in self._multiplications_s)

    def seconds(self, num_bytes: float, num_operations: float) -> float:
        """Return the longer of reading so much and computing so much."""
        return max(num_bytes / self.bytes_per_s, num_operations / self.operations_per_s)


def _second_call_s(run: Callable[[], object]) -> float:
    """Return how long the second of two calls takes; the first wakes the threads."""
    run()
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
