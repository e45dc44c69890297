"""Finds and binds the shared libraries of the feature levels.

Owns the declarations of the C functions, which must be those of `src/api.cpp`. Knows tensors only
as addresses. A call through ctypes lets other Python threads run meanwhile.
"""

import ctypes
import platform
from ctypes import c_bool, c_float, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any

from chatserve.errors import ConfigError
from chatserve.kernels.cpu.build import levels_of, library_path


class CLinear(ctypes.Structure):
    """`Linear` of `src/linear.h`."""

    _fields_ = (
        ("packed", c_void_p),
        ("bias", c_void_p),
        ("out_features", c_int64),
        ("in_features", c_int64),
        ("format", c_int64),
    )


class CQuantizedWeight(ctypes.Structure):
    """`QuantizedWeight` of `src/linear.h`."""

    _fields_ = (("codes", c_void_p), ("scales", c_void_p), ("mins", c_void_p))


class CHeadShape(ctypes.Structure):
    """`HeadShape` of `src/rows.h`."""

    _fields_ = (("num_heads", c_int64), ("num_kv_heads", c_int64), ("head_dim", c_int64))


class CAttentionBatch(ctypes.Structure):
    """`AttentionBatch` of `src/attention.h`."""

    _fields_ = (
        ("num_decodes", c_int64),
        ("decode_page_table", c_void_p),
        ("decode_max_pages", c_int64),
        ("decode_seq_lens", c_void_p),
        ("num_prefills", c_int64),
        ("prefill_page_table", c_void_p),
        ("prefill_max_pages", c_int64),
        ("prefill_seq_lens", c_void_p),
        ("cu_seqlens_q", c_void_p),
    )


class CLayer(ctypes.Structure):
    """`Layer` of `src/decoder.h`."""

    _fields_ = (
        ("attention_norm", c_void_p),
        ("qkv", ctypes.POINTER(CLinear)),
        ("o", ctypes.POINTER(CLinear)),
        ("mlp_norm", c_void_p),
        ("gate_up", ctypes.POINTER(CLinear)),
        ("down", ctypes.POINTER(CLinear)),
    )


class CDecoder(ctypes.Structure):
    """`Decoder` of `src/decoder.h`."""

    _fields_ = (
        ("embed_tokens", c_void_p),
        ("cos", c_void_p),
        ("sin", c_void_p),
        ("vocab_size", c_int64),
        ("max_positions", c_int64),
        ("layers", ctypes.POINTER(CLayer)),
        ("num_layers", c_int64),
        ("final_norm", c_void_p),
        ("heads", CHeadShape),
        ("hidden_size", c_int64),
        ("intermediate_size", c_int64),
        ("rms_norm_eps", c_float),
    )


class CStep(ctypes.Structure):
    """`Step` of `src/decoder.h`."""

    _fields_ = (
        ("input_ids", c_void_p),
        ("positions", c_void_p),
        ("slot_mapping", c_void_p),
        ("num_tokens", c_int64),
        ("attention", ctypes.POINTER(CAttentionBatch)),
        ("k", c_void_p),
        ("v", c_void_p),
        ("num_pages", c_int64),
        ("page_size", c_int64),
        ("rows", c_void_p),
        ("num_rows", c_int64),
    )


_QUANTIZED_WEIGHT = ctypes.POINTER(CQuantizedWeight)
_LINEAR = ctypes.POINTER(CLinear)
_HEAD_SHAPE = ctypes.POINTER(CHeadShape)
_ATTENTION_BATCH = ctypes.POINTER(CAttentionBatch)
_POINTER, _SIZE = c_void_p, c_int64

_ARGUMENTS: dict[str, tuple[type, ...]] = {
    "set_num_threads": (c_int,),
    "pack": (_POINTER, _SIZE, _SIZE, _POINTER),
    "pack_quantized": (_QUANTIZED_WEIGHT, _SIZE, _SIZE, _SIZE, _POINTER),
    "linear_to_bf16": (_LINEAR, _POINTER, _SIZE, _POINTER),
    "linear_to_float": (_LINEAR, _POINTER, _SIZE, _POINTER),
    "rms_norm": (_POINTER, _POINTER, c_float, _SIZE, _SIZE, _POINTER),
    "add_rms_norm": (*[_POINTER] * 3, c_float, _SIZE, _SIZE, _POINTER, _POINTER),
    "silu_and_mul": (_POINTER, _SIZE, _SIZE, _POINTER),
    "rotary_kv_write": (*[_POINTER] * 4, _SIZE, _HEAD_SHAPE, *[_POINTER] * 3),
    "forward": (ctypes.POINTER(CDecoder), ctypes.POINTER(CStep), _POINTER, _POINTER),
    "attend": (_ATTENTION_BATCH, _HEAD_SHAPE, _SIZE, *[_POINTER] * 3, c_float, _POINTER),
}


def usable_levels() -> list[str]:
    """Return the levels that were built and that this processor has, best first."""
    if not library_path("plain").exists():
        return []
    has_level = _function(_open("plain"), "has_level")
    has_level.restype = c_bool
    return [
        level
        for level in levels_of(platform.machine())
        if library_path(level).exists() and has_level(level.encode())
    ]


def load_library(level: str) -> ctypes.CDLL:
    """Return the library of a usable level, its functions declared.

    Raises:
        ConfigError: The file is damaged.
    """
    library = _open(level)
    for name, types in _ARGUMENTS.items():
        function = _function(library, name)
        function.argtypes, function.restype = types, None
        setattr(library, f"chatserve_{name}", function)
    library.chatserve_forward.restype = c_bool
    _function(library, "num_stages").restype = c_int
    library.chatserve_packed_bytes.argtypes = (_SIZE, _SIZE, _SIZE)
    library.chatserve_packed_bytes.restype = c_int64
    return library


def _open(level: str) -> ctypes.CDLL:
    path = library_path(level)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise _damaged(path) from error


def _function(library: ctypes.CDLL, name: str) -> Any:
    try:
        return library[f"chatserve_{name}"]
    except AttributeError as error:
        raise _damaged(Path(library._name)) from error


def _damaged(path: Path) -> ConfigError:
    return ConfigError(f"{path} is damaged: delete it and run `make install`")
