"""The part of a GGUF file that says what is in it: metadata, sizes and where tensors lie.

Owns the mapping of the file and the translation of GGUF's keys into a `ModelConfig`. Never loads
torch, so that a model can be looked at without paying for it; `gguf` makes tensors of what this
finds.
"""

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, ReaderTensor
from gguf.quants import dequantize
from numpy.typing import NDArray

from chatserve.errors import ModelError
from chatserve.model.config import ModelConfig, as_size, check_architecture
from chatserve.model.precision import GROUP_SIZE, Form

MAGIC = b"GGUF"

_QUANTIZED_FORMS = {form.value: form for form in Form if form is not Form.DENSE}


def is_gguf(path: Path) -> bool:
    """Return whether the file begins with GGUF's magic bytes, whatever its name ends with."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class GGUFHeader:
    """One memory-mapped GGUF file, seen from its metadata.

    Owns: the mapping of the file, for as long as tensors are read.
    Used from: model loading, and whoever plans for a model.
    """

    def __init__(self, path: Path):
        self.path = path
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

    def read(self, name: str) -> NDArray[np.float32]:
        """Return a tensor by its GGUF name, dequantised, in memory of its own."""
        stored = self._stored(name)
        try:
            values = dequantize(stored.data, stored.tensor_type)
        except NotImplementedError as error:
            raise ModelError(
                f"{self.path}: {name} is stored as {stored.tensor_type.name}, "
                "which this build cannot read"
            ) from error
        return np.array(values)  # float32 tensors come as views of the read-only mapping

    def form(self, name: str) -> Form:
        """Return the form of a tensor; types that no kernel multiplies by count as dense."""
        stored = self._stored(name)
        form = _QUANTIZED_FORMS.get(stored.tensor_type.name, Form.DENSE)
        return form if len(stored.shape) == 2 else Form.DENSE

    def blocks(self, name: str) -> NDArray[np.uint8]:
        """Return a quantised matrix as it is stored, [num_rows, num_groups, bytes of a block]."""
        stored = self._stored(name)
        num_groups = int(stored.shape[0]) // GROUP_SIZE
        return stored.data.reshape(len(stored.data), num_groups, -1)

    def _stored(self, name: str) -> ReaderTensor:
        stored = self._tensors.get(name)
        if stored is None:
            raise ModelError(f"{self.path} has no tensor {name!r}")
        return stored

    def _read_config(self) -> ModelConfig:
        prefix = str(self._required("general.architecture"))  # of the keys below as well
        check_architecture(prefix)
        num_heads = self._size(f"{prefix}.attention.head_count")
        hidden_size = self._size(f"{prefix}.embedding_length")
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
            raise ModelError(f"{self.path} lacks the metadata key {key!r}")
        return value

    def _size(self, key: str) -> int:
        return as_size(f"{self.path}: {key}", self._required(key))

    def _vocab_size(self) -> int:
        """Return the rows of the embedding; there may be more of them than tokens."""
        embedding = self._tensors.get("token_embd.weight")
        if embedding is None:
            raise ModelError(f"{self.path} has no tensor 'token_embd.weight'")
        if len(embedding.shape) != 2:
            raise ModelError(f"{self.path}: 'token_embd.weight' is no matrix")
        return int(embedding.shape[1])  # GGUF lists dimensions from the innermost

    def _rope_factors(self) -> tuple[float, ...]:
        """Return the divisors that a model with scaled frequencies carries as a tensor."""
        if "rope_freqs.weight" not in self._tensors:
            return ()
        return tuple(self.read("rope_freqs.weight").tolist())

    def _refuse_unsupported_rotation(self, prefix: str, head_dim: int) -> None:
        scaling = self.field(f"{prefix}.rope.scaling.type", "none")
        if scaling != "none":
            raise ModelError(f"{self.path}: rotary scaling {scaling!r} is not supported")
        rotated = self.field(f"{prefix}.rope.dimension_count", head_dim)
        if rotated != head_dim:
            raise ModelError(
                f"{self.path}: {rotated} of {head_dim} head dimensions are rotated; "
                "only full rotation is supported"
            )
