"""Keeps converted weights on disk, so that only the first start pays for conversion.

Owns the files in the cache folder: one safetensors file per model and dtype, whose header also
carries the configuration and text assets. A file appears by rename and is therefore whole or
absent; one that cannot be read all the same is reported and treated as absent. Loading maps the
file, so workers on one machine share its memory. The folder may be deleted at any time.
"""

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from chatserve.model.checkpoint import TextAssets
from chatserve.model.config import ModelConfig

# Raise it whenever names, layout or records of the cached form change.
_FORMAT_VERSION = 1

_MANIFEST = "chatserve"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConvertedModel:
    """A model in the form the decoder loads: fused tensors in their final dtype."""

    config: ModelConfig
    text: TextAssets
    tensors: dict[str, Tensor]


def cache_name(model_name: str, dtype: torch.dtype, fingerprint: str) -> str:
    """Return the name of the file that holds this source, converted to this dtype."""
    dtype_name = str(dtype).removeprefix("torch.")
    return f"{model_name}-{dtype_name}-v{_FORMAT_VERSION}-{fingerprint[:16]}.safetensors"


def read_converted(path: Path) -> ConvertedModel | None:
    """Map a cached model; None when there is none or it is damaged."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            manifest = json.loads(file.metadata()[_MANIFEST])
            return ConvertedModel(
                config=ModelConfig.from_dict(manifest["config"]),
                text=TextAssets.from_dict(manifest["text"]),
                tensors={name: file.get_tensor(name) for name in manifest["tensors"]},
            )
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("ignoring the damaged weight cache %s: %s", path, error)
        return None


def write_converted(path: Path, model: ConvertedModel) -> None:
    """Store a model under `path`; a failure costs the next start time and nothing else."""
    try:
        _write(path, model)
    except (SafetensorError, OSError) as error:
        logger.warning("cannot cache the converted weights in %s: %s", path, error)


def _write(path: Path, model: ConvertedModel) -> None:
    manifest = json.dumps(
        {
            "config": asdict(model.config),
            "text": asdict(model.text),
            "tensors": list(model.tensors),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        save_file(model.tensors, partial, metadata={_MANIFEST: manifest})
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
