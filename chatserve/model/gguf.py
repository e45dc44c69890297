"""Reads a model from one GGUF file: tensors, and through `gguf_tokenizer` its text side.

Owns the mapping from GGUF's tensor names and layouts to those of Hugging Face. Quantised tensors
come from `gguf_header` as float32; nothing downstream knows that they were ever quantised.

The one trap of the format: files of the llama architecture store the rows of the query and key
projections in the order of interleaved rotary pairs (0, 1), (2, 3), …, while the decoder rotates
halves (0, d/2), (1, d/2 + 1), …; `_halves_from_pairs` puts them back. Other architectures are
stored as halves already.
"""

from pathlib import Path

import torch
from torch import Tensor

from chatserve.model.checkpoint import Checkpoint
from chatserve.model.config import ModelConfig
from chatserve.model.gguf_header import GGUFHeader
from chatserve.model.gguf_tokenizer import read_text_assets

# GGUF's "llama" is the only supported architecture whose q and k rows are permuted.
_PERMUTED_ARCHITECTURE = "llama"

_TOP_LEVEL_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def open_gguf(path: Path) -> Checkpoint:
    """Open a GGUF file without reading its tensors yet."""
    header = GGUFHeader(path)

    def read_tensor(name: str) -> Tensor:
        """Return a tensor by its Hugging Face name, float32 in the Hugging Face layout."""
        values = torch.from_numpy(header.read(_gguf_name(name)))
        return _halves_from_pairs(name, values, header.config)

    return Checkpoint(header.config, read_text_assets(header.field), read_tensor)


def _halves_from_pairs(name: str, values: Tensor, config: ModelConfig) -> Tensor:
    if config.architecture != _PERMUTED_ARCHITECTURE:
        return values
    if ".q_proj." not in name and ".k_proj." not in name:
        return values
    num_heads = config.num_heads if ".q_proj." in name else config.num_kv_heads
    # rows as [num_heads, pair, member] become [num_heads, member, pair]
    rows = values.view(num_heads, config.head_dim // 2, 2, *values.shape[1:])
    return rows.transpose(1, 2).reshape(values.shape)


def _gguf_name(name: str) -> str:
    """Translate `model.layers.3.mlp.up_proj.weight` into `blk.3.ffn_up.weight`, for instance."""
    if name in _TOP_LEVEL_NAMES:
        return _TOP_LEVEL_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{_LAYER_NAMES[module]}.{kind}"
