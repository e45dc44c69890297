"""What a model source offers, whichever format it is stored in, and what becomes of it.

Owns the records that the readers (`gguf`, `hf_adapter`) fill and that `conversion` makes of them.
Tensors are asked for one at a time by their Hugging Face names, so that a checkpoint never has to
be in memory as a whole in its stored precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch

from chatserve.kernels.quantized import Weight
from chatserve.model.config import ModelConfig
from chatserve.model.precision import Form, StoredForm
from chatserve.model.weight_layout import EMBEDDING

ReadTensor = Callable[[str], Weight]


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
    """An opened model source.

    `read_tensor` gives what `stored_form` announces. Both raise ModelError for a name that is not
    there.
    """

    config: ModelConfig
    text: TextAssets
    read_tensor: ReadTensor
    stored_form: StoredForm


@dataclass(frozen=True, slots=True)
class ConvertedModel:
    """A model in the form the decoder loads: fused weights, each in the form that is served."""

    config: ModelConfig
    text: TextAssets
    forms: dict[str, Form]
    weights: dict[str, Weight]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of dense weights, and of activations."""
        return self.weights[EMBEDDING].dtype
