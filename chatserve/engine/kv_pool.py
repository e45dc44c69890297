"""The KV pool: the tensors behind the page ids.

Owns the memory of every page. How many there are is the plan's business, and which page means what
the prefix cache's.
"""

import torch

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
    return KVPages(
        k=torch.empty(shape, dtype=dtype, device=device),
        v=torch.empty(shape, dtype=dtype, device=device),
    )
