"""Measures how fast this machine reads weights, reads KV, and multiplies.

Owns the measurement. Knows nothing of what the figures are used for.

Speeds are measured with the operations that a step spends its time in, on tensors shaped like the
model's: the product of one row and of many rows with weights, and attention over pages with the
backend that will serve. A plain sum over memory reads several times faster than any of these, and
would promise steps that no model takes. Nothing timed at once is longer than the turns that
processes take on a core, and the fastest pass counts: neighbours only ever slow one down.
"""

import time
from collections.abc import Callable
from itertools import cycle

import torch
from torch import Tensor
from torch.nn import functional

from chatserve.kernels import get_ops
from chatserve.model.config import ModelConfig
from chatserve.planning.step_time import MachineSpeed

_WEIGHT_BYTES = 128 << 20  # of weights and of KV: more than caches hold, to mean memory
_PASS_BYTES = 8 << 20
_MAX_MATRIX_BYTES = 64 << 20
_MAX_TENSORS = 1024
_PREFILL_ROWS = 256
_KV_TOKENS = 1024
_MAX_REQUESTS = 8
_MEASURE_S = 0.08
_MIN_PASSES = 8


@torch.inference_mode()
def measure_speed(
    model: ModelConfig, dtype: torch.dtype, device: str, page_size: int
) -> MachineSpeed:
    """Measure for about half a second, on the threads that torch is set to use."""
    matrices = _matrices_like(model, dtype, device)
    many = torch.ones(_PREFILL_ROWS, model.hidden_size, dtype=dtype, device=device)
    multiply_s = _fastest(lambda: functional.linear(many, matrices[0]), device)
    return MachineSpeed(
        bandwidth_gb_per_s=_weight_bandwidth(matrices, many[:1], device),
        kv_bandwidth_gb_per_s=_kv_bandwidth(model, dtype, device, page_size),
        throughput_gflops=2 * _PREFILL_ROWS * matrices[0].numel() / multiply_s / 1e9,
    )


def _weight_bandwidth(matrices: tuple[Tensor, ...], row: Tensor, device: str) -> float:
    """Return how many GB of weights one row is multiplied with in a second."""
    per_pass = min(len(matrices), -(-_PASS_BYTES // matrices[0].nbytes))
    starts = cycle(range(0, len(matrices) - per_pass + 1, per_pass))

    def read() -> None:
        start = next(starts)
        for matrix in matrices[start : start + per_pass]:
            functional.linear(row, matrix)

    return per_pass * matrices[0].nbytes / _fastest(read, device) / 1e9


def _kv_bandwidth(model: ModelConfig, dtype: torch.dtype, device: str, page_size: int) -> float:
    """Return how many GB of KV a batch of decoding requests looks at in a second."""
    kv_bytes = _KV_TOKENS * model.kv_bytes_per_token(dtype.itemsize) // model.num_layers
    num_requests = min(_MAX_REQUESTS, max(1, _PASS_BYTES // kv_bytes))
    num_layers = min(_MAX_TENSORS, -(-_WEIGHT_BYTES // (num_requests * kv_bytes)))
    pages_each = -(-_KV_TOKENS // page_size)
    shape = (num_requests * pages_each, page_size, model.num_kv_heads, model.head_dim)
    k_pages = torch.ones(num_layers, *shape, dtype=dtype, device=device)
    v_pages = torch.ones(num_layers, *shape, dtype=dtype, device=device)
    table = torch.arange(shape[0], dtype=torch.int32, device=device).view(num_requests, -1)
    lengths = torch.full((num_requests,), _KV_TOKENS, dtype=torch.int32, device=device)
    q = torch.ones(num_requests, model.num_heads, model.head_dim, dtype=dtype, device=device)
    ops, layers = get_ops(device), cycle(range(num_layers))

    def attend() -> None:
        layer = next(layers)
        ops.paged_decode(q, k_pages[layer], v_pages[layer], table, lengths, 1.0)

    return num_requests * kv_bytes / _fastest(attend, device) / 1e9


def _matrices_like(model: ModelConfig, dtype: torch.dtype, device: str) -> tuple[Tensor, ...]:
    """Return weights the shape of the model's largest, as many as a cache cannot hold."""
    row_bytes = model.hidden_size * dtype.itemsize
    num_rows = max(1, min(2 * model.intermediate_size, _MAX_MATRIX_BYTES // row_bytes))
    num_matrices = min(_MAX_TENSORS, -(-_WEIGHT_BYTES // (num_rows * row_bytes)))
    shape = (num_matrices, num_rows, model.hidden_size)
    # Written to, since memory that never was is all one page of zeros.
    return torch.ones(shape, dtype=dtype, device=device).unbind()


def _fastest(run: Callable[[], object], device: str) -> float:
    """Return the shortest of several passes, in seconds."""
    _time_once(run, device)  # the first pass also pays for choosing and compiling kernels
    times: list[float] = []
    while len(times) < _MIN_PASSES or sum(times) < _MEASURE_S:
        times.append(_time_once(run, device))
    return min(times)


def _time_once(run: Callable[[], object], device: str) -> float:
    start = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start
