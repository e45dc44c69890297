"""The ops that the model is made of, behind one contract.

`get_ops` is the only place that chooses a backend, and the only one that reaches Triton: a machine
without a GPU never imports it. The contract is `ops.py`; the memory layout is in `README.md`.
"""

import torch

from chatserve.kernels.ops import AttentionBatch, KVPages, Ops
from chatserve.kernels.torch_ops import TorchOps

__all__ = ["AttentionBatch", "KVPages", "Ops", "get_ops"]


def get_ops(device: str) -> Ops:
    """Return the backend for a torch device string such as `cpu` or `cuda:0`.

    Raises:
        ImportError: The device is a GPU and Triton is not installed.
    """
    if torch.device(device).type != "cuda":
        return TorchOps()
    from chatserve.kernels.triton import TritonOps

    return TritonOps()
