"""Reads a model from one GGUF file: tensors, and through `gguf_tokenizer` its text side.

Owns the mapping from GGUF's layouts to those of Hugging Face. Matrices of a type that kernels
multiply by (`precision.Form`) stay quantised; all others come from `gguf_header` as float32, and
nothing downstream knows that they were ever anything else.

The one trap of the format: files of the llama architecture store the rows of the query and key
projections in the order of interleaved rotary pairs (0, 1), (2, 3), …, while the decoder rotates
halves (0, d/2), (1, d/2 + 1), …; `_halves_from_pairs` puts them back. Other architectures are
stored as halves already.
"""

from pathlib import Path

import torch
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.kernels.quantized import Weight
from chatserve.model.checkpoint import Checkpoint
from chatserve.model.config import ModelConfig
from chatserve.model.conversion import map_rows
from chatserve.model.gguf_blocks import quantized_from_blocks
from chatserve.model.gguf_header import GGUFHeader
from chatserve.model.gguf_names import gguf_name
from chatserve.model.gguf_tokenizer import read_text_assets
from chatserve.model.precision import Form

# GGUF's "llama" is the only supported architecture whose q and k rows are permuted.
_PERMUTED_ARCHITECTURE = "llama"


def open_gguf(path: Path) -> Checkpoint:
    """Open a GGUF file without reading its tensors yet."""
    header = GGUFHeader(path)

    def stored_form(name: str) -> Form:
        return header.form(gguf_name(name))

    def read_tensor(name: str) -> Weight:
        """Return a tensor by its Hugging Face name and in the Hugging Face layout."""
        stored_name, form = gguf_name(name), stored_form(name)
        if form is Form.DENSE:
            values = torch.from_numpy(header.read(stored_name))
            return _halves_from_pairs(name, values, header.config)
        weight = quantized_from_blocks(header.blocks(stored_name), form)
        return map_rows(weight, lambda rows: _halves_from_pairs(name, rows, header.config))

    text = read_text_assets(header.field)
    return Checkpoint(header.config, text, read_tensor, stored_form)


def _halves_from_pairs(name: str, values: Tensor, config: ModelConfig) -> Tensor:
    """Reorder the rows of a weight, of a bias, or of a part of a quantised weight."""
    if config.architecture != _PERMUTED_ARCHITECTURE:
        return values
    if ".q_proj." not in name and ".k_proj." not in name:
        return values
    num_heads = config.num_heads if ".q_proj." in name else config.num_kv_heads
    if len(values) != num_heads * config.head_dim:
        raise ModelError(f"{name} has {len(values)} rows, expected {num_heads * config.head_dim}")
    # rows as [num_heads, pair, member] become [num_heads, member, pair]
    rows = values.view(num_heads, config.head_dim // 2, 2, *values.shape[1:])
    return rows.transpose(1, 2).reshape(values.shape)
