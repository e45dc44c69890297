"""Questions about a device that only torch can answer, and the one setting it takes.

Owns nothing. Knows no model and no plan.
"""

import torch

from chatserve.errors import ConfigError


def require_device(device: str) -> None:
    """Raise ConfigError where torch cannot compute on the device."""
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: torch finds no CUDA device here; use --device cpu")


def use_threads(num_threads: int | None) -> None:
    """Set how many threads torch computes with; None leaves it one per core."""
    if num_threads is not None:
        torch.set_num_threads(num_threads)


def free_gpu_bytes() -> int:
    free, _total = torch.cuda.mem_get_info()
    return int(free)
