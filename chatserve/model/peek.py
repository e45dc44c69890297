"""A look at a model without loading it: no weights, no tokenizer, no torch.

Owns a source's name, and the choice of the reader by what the source is.
"""

from dataclasses import dataclass
from pathlib import Path

from chatserve.errors import ModelError
from chatserve.model.config import ModelConfig
from chatserve.model.gguf_header import GGUFHeader, is_gguf
from chatserve.model.gguf_names import gguf_name
from chatserve.model.hf_config import read_config
from chatserve.model.precision import (
    Quantization,
    StoredForm,
    WeightSummary,
    served_forms,
    stored_dense,
    summarize,
)


@dataclass(frozen=True, slots=True)
class PeekedModel:
    """What a source says of itself; `stored_form` keeps a GGUF file mapped."""

    config: ModelConfig
    stored_form: StoredForm

    def summarize(self, quantization: Quantization, dtype: str) -> WeightSummary:
        """Describe the weights as they would be loaded; `dtype` is torch's name of it."""
        forms = served_forms(self.config, self.stored_form, quantization)
        return summarize(self.config, forms, quantization, dtype)


def peek_model(path: Path) -> PeekedModel:
    """Look at the model at `path`, a GGUF file or a Hugging Face folder.

    Raises:
        ModelError: The source cannot be read or needs something this build lacks.
    """
    if path.is_dir():
        return PeekedModel(read_config(path), stored_dense)
    if is_gguf(path):
        header = GGUFHeader(path)
        return PeekedModel(header.config, lambda name: header.form(gguf_name(name)))
    raise ModelError(f"{path} is neither a folder nor a GGUF file")


def peek_config(path: Path) -> ModelConfig:
    """Return the configuration of the model at `path`, as `peek_model` finds it."""
    return peek_model(path).config


def model_name(path: Path) -> str:
    """Return the name under which the model at `path` is served."""
    return path.name if path.is_dir() else path.stem
