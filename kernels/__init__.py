"""The ops that the model is made of, behind one contract.

`get_ops` is the only place that chooses a backend, and the only one that reaches Triton: a machine
without a GPU never imports it. The contract is `ops.py`; the memory layout is in `README.md`.
"""

import torch

from chatserve.errors import ConfigError
from chatserve.kernels.cpu import CpuOps, usable_levels
from chatserve.kernels.ops import AttentionBatch, KVPages, Ops, PackedLinear
from chatserve.kernels.torch_ops import TorchOps

__all__ = ["HOW_TO_BUILD", "AttentionBatch", "KVPages", "Ops", "PackedLinear", "get_ops"]

HOW_TO_BUILD = "install a C++ compiler, then run `make install`"


def get_ops(device: str, cpu_level: str = "auto") -> Ops:
    """Return the backend for a torch device string such as `cpu` or `cuda:0`.

    On a CPU it computes with as many threads as torch has now.

    Args:
        device: Where to compute.
        cpu_level: The feature level of the CPU kernels, `auto` for the best that there is, or
            `torch` for the reference.

    Raises:
        ImportError: The device is a GPU and Triton is not installed.
        ConfigError: This level was not built, or the processor does not have it.
    """
    if torch.device(device).type != "cuda":
        return _cpu_ops(cpu_level)
    from chatserve.kernels.triton import TritonOps

    return TritonOps()


def _cpu_ops(level: str) -> Ops:
    if level == "torch":
        return TorchOps()
    usable = usable_levels()
    if level != "auto" and level not in usable:
        reason = (
            f"this machine runs {', '.join(usable)} and torch"
            if usable
            else f"the CPU kernels are not built; {HOW_TO_BUILD}"
        )
        raise ConfigError(f"--cpu-level {level}: {reason}")
    if not usable:
        return TorchOps()
    return CpuOps(usable[0] if level == "auto" else level)
