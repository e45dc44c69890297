"""Which number format weights and KV have.

Owns the meaning of `--dtype`. Knows no model.

A decode step is bound by the bytes it reads, and a value of bfloat16 has half of float32's. So
`auto` is bfloat16 wherever computing in it costs less than reading it saves. The C++ kernels
compute in float32 registers and only store bfloat16, which needs no special instruction; on one
Zen 4 core, microseconds for one layer of 3072 x 576, held down to AVX2 but for the first column:

    rows    kernels avx512    kernels avx2    kernels plain    torch float32
       1               155             166              224              795
       8               301             513             2320             1259
      64              1056            2754            11577             3497

At the level `plain` a prompt takes three times as long as in torch's float32, so that `auto` is
float32 there. That is x86 without fused multiplication. What `plain` means on arm64 has it, and
twice the registers; bfloat16 is chosen there by this argument, not by a measurement.
"""

import platform

import torch

from chatserve.errors import ConfigError
from chatserve.kernels import Ops
from chatserve.kernels.cpu import CpuOps

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_ARM64 = ("aarch64", "arm64")


def resolve_dtype(name: str, device: str, ops: Ops) -> torch.dtype:
    """Return the dtype for a name; `auto` is what these ops are fastest in."""
    if name == "auto":
        return torch.bfloat16 if _gains_from_bfloat16(device, ops) else torch.float32
    if name not in _DTYPES:
        raise ConfigError(f"--dtype: expected auto, {', '.join(_DTYPES)}, received {name!r}")
    return _DTYPES[name]


def _gains_from_bfloat16(device: str, ops: Ops) -> bool:
    if torch.device(device).type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if isinstance(ops, CpuOps):
        return ops.level != "plain" or platform.machine() in _ARM64
    # torch has no public question for this; every CPU with AMX has the instructions asked for
    return torch.cpu._is_avx512_bf16_supported()
