"""The KV pool: the tensors behind the page ids.

Owns the memory of every page, and the arithmetic of how many pages fit. Knows no request: which
page means what is the prefix cache's business.
"""

import os

import torch

from chatserve.errors import ConfigError
from chatserve.kernels.ops import KVPages
from chatserve.model.config import ModelConfig

DEFAULT_MEMORY_SHARE = 0.25
"""Share of the machine's memory that the pool may take when nothing else is said.

On a GPU, of what is free there. Pages that were never used take none of it.
"""


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


def choose_num_pages(
    *, page_bytes: int, wanted_pages: int, kv_memory_bytes: int | None, device: str
) -> int:
    """Return how many pages to allocate where their number was not given.

    With `kv_memory_bytes`, what fits in it. Without, `wanted_pages` (every seat at full context),
    or less where that would be over `DEFAULT_MEMORY_SHARE`.

    Raises:
        ConfigError: Not even one page fits.
    """
    if kv_memory_bytes is not None:
        num_pages = kv_memory_bytes // page_bytes
    else:
        share = int(_memory_bytes(device) * DEFAULT_MEMORY_SHARE)
        num_pages = min(wanted_pages, share // page_bytes)
    if num_pages < 1:
        raise ConfigError(
            f"no KV page fits: one page needs {page_bytes:,} bytes; raise --kv-memory"
            + (f" (now {kv_memory_bytes:,} bytes)" if kv_memory_bytes is not None else "")
        )
    return num_pages


def _memory_bytes(device: str) -> int:
    if device.startswith("cuda"):
        free, _total = torch.cuda.mem_get_info(device)
        return int(free)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
