"""What a model source offers, whichever format it is stored in.

Owns the two records that the readers (`gguf`, `hf_adapter`) fill and `weights` consumes. Tensors
are asked for one at a time by their Hugging Face names, so that a checkpoint never has to be in
memory as a whole in its stored precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

from chatserve.model.config import ModelConfig

ReadTensor = Callable[[str], Tensor]


@dataclass(frozen=True, slots=True)
class TextAssets:
    """How text becomes token ids for this model, and when its answers end.

    `tokenizer_json` is in the format of the `tokenizers` library. `adds_bos` says that a raw
    prompt begins with `bos_token`; chat templates place it themselves. The defaults are what the
    model's authors recommend for sampling.
    """

    tokenizer_json: str
    chat_template: str | None
    bos_token: str | None
    eos_token: str | None
    eos_token_ids: tuple[int, ...]
    adds_bos: bool
    default_temperature: float = 1.0
    default_top_p: float = 1.0
    default_top_k: int = 0

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(**{**fields, "eos_token_ids": tuple(fields["eos_token_ids"])})


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An opened model source. `read_tensor` raises ModelError for a name that is not there."""

    config: ModelConfig
    text: TextAssets
    read_tensor: ReadTensor
