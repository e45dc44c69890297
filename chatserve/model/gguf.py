"""Reads a model from one GGUF file: sizes, tensors and, through `gguf_tokenizer`, its text side.

Owns the mapping from GGUF's names and layouts to those of Hugging Face. Quantised tensors are
dequantised to float32 here; nothing downstream knows that they were ever quantised.

The one trap of the format: files of the llama architecture store the rows of the query and key
projections in the order of interleaved rotary pairs (0, 1), (2, 3), …, while the decoder rotates
halves (0, d/2), (1, d/2 + 1), …; `_halves_from_pairs` puts them back. Other architectures are
stored as halves already.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, ReaderTensor
from gguf.quants import dequantize
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.model.checkpoint import Checkpoint
from chatserve.model.config import ModelConfig, check_architecture
from chatserve.model.gguf_tokenizer import read_text_assets

MAGIC = b"GGUF"

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


def is_gguf(path: Path) -> bool:
    """Return whether the file begins with GGUF's magic bytes, whatever its name ends with."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_gguf(path: Path) -> Checkpoint:
    """Open a GGUF file without reading its tensors yet."""
    file = GGUFFile(path)
    return Checkpoint(file.config, read_text_assets(file.field), file.read_tensor)


class GGUFFile:
    """One memory-mapped GGUF file.

    Owns: the mapping of the file, for as long as tensors are read.
    Used from: model loading.
    """

    def __init__(self, path: Path):
        self._path = path
        try:
            self._reader = GGUFReader(path)
        except (ValueError, IndexError, KeyError) as error:
            raise ModelError(f"{path} is not a readable GGUF file: {error}") from error
        self._tensors: dict[str, ReaderTensor] = {t.name: t for t in self._reader.tensors}
        self.config = self._read_config()

    def field(self, key: str, default: Any = None) -> Any:
        """Return a metadata value as Python data, or `default` when the file lacks it."""
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def read_tensor(self, name: str) -> Tensor:
        """Return a tensor by its Hugging Face name, float32 in the Hugging Face layout."""
        stored = self._tensors.get(_gguf_name(name))
        if stored is None:
            raise ModelError(f"{self._path} has no tensor {_gguf_name(name)!r}")
        return self._halves_from_pairs(name, self._dequantised(stored))

    def _dequantised(self, stored: ReaderTensor) -> Tensor:
        try:
            values = dequantize(stored.data, stored.tensor_type)
        except NotImplementedError as error:
            raise ModelError(
                f"{self._path}: {stored.name} is stored as {stored.tensor_type.name}, "
                "which this build cannot read"
            ) from error
        # float32 tensors come as views of the read-only mapping; torch wants memory of its own
        return torch.from_numpy(np.array(values))

    def _halves_from_pairs(self, name: str, values: Tensor) -> Tensor:
        config = self.config
        if config.architecture != _PERMUTED_ARCHITECTURE:
            return values
        if ".q_proj." not in name and ".k_proj." not in name:
            return values
        num_heads = config.num_heads if ".q_proj." in name else config.num_kv_heads
        # rows as [num_heads, pair, member] become [num_heads, member, pair]
        rows = values.view(num_heads, config.head_dim // 2, 2, *values.shape[1:])
        return rows.transpose(1, 2).reshape(values.shape)

    def _read_config(self) -> ModelConfig:
        prefix = str(self._required("general.architecture"))  # of the keys below as well
        check_architecture(prefix)
        num_heads = self._required(f"{prefix}.attention.head_count")
        hidden_size = self._required(f"{prefix}.embedding_length")
        head_dim = self.field(f"{prefix}.attention.key_length", hidden_size // num_heads)
        self._refuse_unsupported_rotation(prefix, head_dim)
        return ModelConfig(
            architecture=prefix,
            vocab_size=self._vocab_size(),
            hidden_size=hidden_size,
            intermediate_size=self._required(f"{prefix}.feed_forward_length"),
            num_layers=self._required(f"{prefix}.block_count"),
            num_heads=num_heads,
            num_kv_heads=self.field(f"{prefix}.attention.head_count_kv", num_heads),
            head_dim=head_dim,
            max_position_embeddings=self._required(f"{prefix}.context_length"),
            rms_norm_eps=self._required(f"{prefix}.attention.layer_norm_rms_epsilon"),
            rope_theta=self.field(f"{prefix}.rope.freq_base", 10_000.0),
            rope_factors=self._rope_factors(),
            tie_word_embeddings="output.weight" not in self._tensors,
            qkv_bias="blk.0.attn_q.bias" in self._tensors,
            o_bias="blk.0.attn_output.bias" in self._tensors,
        )

    def _required(self, key: str) -> Any:
        value = self.field(key)
        if value is None:
            raise ModelError(f"{self._path} lacks the metadata key {key!r}")
        return value

    def _vocab_size(self) -> int:
        """Return the rows of the embedding; there may be more of them than tokens."""
        embedding = self._tensors.get("token_embd.weight")
        if embedding is None:
            raise ModelError(f"{self._path} has no tensor 'token_embd.weight'")
        return int(embedding.shape[1])  # GGUF lists dimensions from the innermost

    def _rope_factors(self) -> tuple[float, ...]:
        """Return the divisors that a model with scaled frequencies carries as a tensor."""
        stored = self._tensors.get("rope_freqs.weight")
        if stored is None:
            return ()
        return tuple(self._dequantised(stored).tolist())

    def _refuse_unsupported_rotation(self, prefix: str, head_dim: int) -> None:
        scaling = self.field(f"{prefix}.rope.scaling.type", "none")
        if scaling != "none":
            raise ModelError(f"{self._path}: rotary scaling {scaling!r} is not supported")
        rotated = self.field(f"{prefix}.rope.dimension_count", head_dim)
        if rotated != head_dim:
            raise ModelError(
                f"{self._path}: {rotated} of {head_dim} head dimensions are rotated; "
                "only full rotation is supported"
            )


def _gguf_name(name: str) -> str:
    """Translate `model.layers.3.mlp.up_proj.weight` into `blk.3.ffn_up.weight`, for instance."""
    if name in _TOP_LEVEL_NAMES:
        return _TOP_LEVEL_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{_LAYER_NAMES[module]}.{kind}"
