"""The KV pool: the tensors behind the page ids.

Owns the memory of every page. How many there are is the plan's business, and which page means what
the prefix cache's.

On a CPU the pool lies in the system's huge pages, usually of 2 MiB, where there are any. What was
never touched still takes no memory, but it is taken in larger pieces: layers lie one after another,
so that the first KV page touches a huge page for the keys and one for the values of every layer.
Free pages are handed out from the lowest id on, so that is also the most that is ever taken in
vain: 120 MiB for 30 layers, however large the pool.
"""

import math

import torch
from torch import Tensor

from chatserve.kernels.cpu.memory import map_memory
from chatserve.kernels.ops import KVPages
from chatserve.model.config import ModelConfig


def allocate_kv_pages(
    config: ModelConfig, num_pages: int, page_size: int, dtype: torch.dtype, device: str
) -> KVPages:
    """Return uninitialised pages for every layer.

    Nothing reads a slot before it was written (tests poison the pool with NaN to show it), and
    memory that is never touched costs nothing; zeroing 3 GB would take seconds of every start.
    """
    shape = (config.num_layers, num_pages, page_size, config.num_kv_heads, config.head_dim)
    return KVPages(k=_empty(shape, dtype, device), v=_empty(shape, dtype, device))


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> Tensor:
    if torch.device(device).type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device)
    return map_memory(math.prod(shape) * dtype.itemsize).view(dtype).view(shape)
