"""What a decoder looks like: sizes and switches, whatever file they came from.

Owns `ModelConfig` and the families this build can run. Knows no file format and no tensor; the
readers of GGUF files and Hugging Face folders translate into it, the decoder is built from it.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

from chatserve.errors import ModelError

SUPPORTED_ARCHITECTURES = ("llama", "mistral", "qwen2")


_LARGEST = 1 << 24
"""No dimension of a model comes near this. What a damaged or hostile file says may."""

_MOST_LAYERS = 4096


def as_size(name: str, value: object, largest: int = _LARGEST) -> int:
    """Return a dimension as a model file gives it.

    Raises:
        ModelError: It is no whole number from 1 to `largest`.
    """
    if not isinstance(value, int) or not 1 <= value <= largest:
        raise ModelError(f"{name} must be a whole number from 1 to {largest:,}, received {value!r}")
    return value


def check_architecture(architecture: str) -> None:
    """Refuse what the decoder cannot run, before any of its other settings are looked at.

    Raises:
        ModelError: The message names those that work.
    """
    if architecture not in SUPPORTED_ARCHITECTURES:
        raise ModelError(
            f"architecture {architecture!r} is not supported; "
            f"this build runs {', '.join(SUPPORTED_ARCHITECTURES)}"
        )


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One decoder of the llama family.

    `rope_factors` are what long-context scaling divides the rotary frequencies by, one for each
    pair of dimensions; empty means no scaling. `qkv_bias` and `o_bias` say which projections of
    attention add a bias.
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    rope_factors: tuple[float, ...] = ()
    tie_word_embeddings: bool = False
    qkv_bias: bool = False
    o_bias: bool = False

    def __post_init__(self) -> None:
        check_architecture(self.architecture)
        for name in ("vocab_size", "hidden_size", "intermediate_size", "num_heads", "num_kv_heads"):
            as_size(name, getattr(self, name))
        as_size("num_layers", self.num_layers, _MOST_LAYERS)
        as_size("max_position_embeddings", self.max_position_embeddings)
        for name in ("rms_norm_eps", "rope_theta"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ModelError(f"{name} must be a number above 0, received {value!r}")
        if as_size("head_dim", self.head_dim) % 2:
            raise ModelError(f"heads of {self.head_dim} dimensions cannot be rotated by halves")
        if self.num_heads % self.num_kv_heads:
            raise ModelError(
                f"{self.num_heads} attention heads cannot share {self.num_kv_heads} KV heads evenly"
            )
        if len(self.rope_factors) not in (0, self.head_dim // 2):
            raise ModelError(
                f"expected {self.head_dim // 2} rotary factors, received {len(self.rope_factors)}"
            )

    def kv_bytes_per_token(self, bytes_per_value: int) -> int:
        """Return what one token occupies in the KV pool, keys and values of all layers."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * bytes_per_value

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(**{**fields, "rope_factors": tuple(fields["rope_factors"])})
