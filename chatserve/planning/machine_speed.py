"""Measures how fast this machine reads weights, reads KV, and multiplies.

Owns the measurement. Knows nothing of what the figures are used for.

Speeds are measured with the ops that will serve, on tensors shaped like the model's: the product
of one row and of many rows with weights in the form that the backend keeps them in, and attention
over pages. A plain sum over memory reads several times faster than any of these, and would promise
steps that no model takes. Nothing timed at once is longer than the turns that processes take on a
core, and the fastest pass counts: neighbours only ever slow one down.
"""

import time
from collections.abc import Callable, Sequence
from itertools import cycle

import torch
from torch import Tensor

from chatserve.kernels import Ops, PackedLinear
from chatserve.kernels.quantized import GROUP_SIZE, quantize
from chatserve.model.config import ModelConfig
from chatserve.planning.step_time import MachineSpeed, ModelCost

_WEIGHT_BYTES = 64 << 20  # of weights and of KV: more than most caches hold, to mean memory
_PASS_BYTES = 8 << 20
_MAX_MATRIX_BYTES = 64 << 20
_MAX_TENSORS = 1024
_PREFILL_ROWS = 256
_KV_TOKENS = 1024
_MAX_REQUESTS = 8
_MEASURE_S = 0.08
_MIN_PASSES = 8

# On average: a few matrices of a quantised model may be of another width.
_LEAST_DENSE_BITS = 12
_MOST_INT4_BITS = 6.5


@torch.inference_mode()
def measure_speed(
    model: ModelConfig, cost: ModelCost, ops: Ops, device: str, page_size: int
) -> MachineSpeed:
    """Measure for about half a second, on the threads that the ops have.

    The ops keep the memory of weights that they pack: give them no others.
    """
    dtype: torch.dtype = getattr(torch, cost.dtype)
    matrix = _matrix_like(model, dtype, device)
    many = torch.ones(_PREFILL_ROWS, model.hidden_size, dtype=dtype, device=device)
    layer_bytes = int(matrix.numel() * cost.bits_per_weight / 8)
    layers = _enough_layers(matrix, layer_bytes, cost.bits_per_weight, ops)
    multiply_s = _fastest(lambda: layers[0](many), device)
    return MachineSpeed(
        bandwidth_gb_per_s=_weight_bandwidth(layers, many[:1], layer_bytes, device),
        kv_bandwidth_gb_per_s=_kv_bandwidth(model, dtype, ops, device, page_size),
        throughput_gflops=2 * _PREFILL_ROWS * matrix.numel() / multiply_s / 1e9,
    )


def _matrix_like(model: ModelConfig, dtype: torch.dtype, device: str) -> Tensor:
    """Return a weight the shape of the model's largest."""
    row_bytes = model.hidden_size * dtype.itemsize
    num_rows = max(1, min(2 * model.intermediate_size, _MAX_MATRIX_BYTES // row_bytes))
    return torch.ones(num_rows, model.hidden_size, dtype=dtype, device=device)


def _enough_layers(
    matrix: Tensor, layer_bytes: int, bits_per_weight: float, ops: Ops
) -> list[PackedLinear]:
    """Return more layers than a cache holds, each with a weight of its own in memory."""
    num_layers = min(_MAX_TENSORS, -(-_WEIGHT_BYTES // layer_bytes))
    if bits_per_weight < _LEAST_DENSE_BITS and matrix.shape[1] % GROUP_SIZE == 0:
        # Nothing but the backend's packed copy is read, so that one source serves all.
        weight = quantize(matrix, 8 if bits_per_weight > _MOST_INT4_BITS else 4)
        return [ops.pack_linear(weight, None, matrix.dtype) for _ in range(num_layers)]
    return [ops.pack_linear(matrix.clone(), None, matrix.dtype) for _ in range(num_layers)]


def _weight_bandwidth(
    layers: Sequence[PackedLinear], row: Tensor, layer_bytes: int, device: str
) -> float:
    """Return how many GB of weights one row is multiplied with in a second."""
    per_pass = min(len(layers), -(-_PASS_BYTES // layer_bytes))
    starts = cycle(range(0, len(layers) - per_pass + 1, per_pass))

    def read() -> None:
        start = next(starts)
        for layer in layers[start : start + per_pass]:
            layer(row)

    return per_pass * layer_bytes / _fastest(read, device) / 1e9


def _kv_bandwidth(
    model: ModelConfig, dtype: torch.dtype, ops: Ops, device: str, page_size: int
) -> float:
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
    layers = cycle(range(num_layers))

    def attend() -> None:
        layer = next(layers)
        ops.paged_decode(q, k_pages[layer], v_pages[layer], table, lengths, 1.0)

    return num_requests * kv_bytes / _fastest(attend, device) / 1e9


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
