"""A look at a model without loading it: no weights, no tokenizer, no torch.

Owns a source's name, and the choice of the reader by what the source is.
"""

from pathlib import Path

from chatserve.errors import ModelError
from chatserve.model.config import ModelConfig
from chatserve.model.gguf_header import GGUFHeader, is_gguf
from chatserve.model.hf_config import read_config


def peek_config(path: Path) -> ModelConfig:
    """Return the configuration of the model at `path`, a GGUF file or a Hugging Face folder.

    Raises:
        ModelError: The source cannot be read or needs something this build lacks.
    """
    if path.is_dir():
        return read_config(path)
    if is_gguf(path):
        return GGUFHeader(path).config
    raise ModelError(f"{path} is neither a folder nor a GGUF file")


def model_name(path: Path) -> str:
    """Return the name under which the model at `path` is served."""
    return path.name if path.is_dir() else path.stem
