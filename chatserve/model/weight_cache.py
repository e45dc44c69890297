"""Keeps converted weights on disk, so that only the first start pays for conversion.

Owns the files in the cache folder: one safetensors file per model, quantisation and dtype, whose
header also carries the configuration and text assets. A quantised weight is stored as its parts,
`NAME.codes`, `NAME.scales` and `NAME.mins`. A file appears by rename and is therefore whole or
absent; one that cannot be read all the same is reported and treated as absent. Loading maps the
file, so workers on one machine share what is used as it lies there: all of it with torch, the
embedding and the vectors with the CPU kernels, which pack matrices into memory of their own. The
folder may be deleted at any time.

A new file takes the place of what older versions, and older contents of the source, have left
behind: files that only differ in version or fingerprint. Whoever has one mapped keeps it, since the
system frees a file when its last user lets go. Two sources of one name that are served in turn
cost each other the conversion, and nothing else.
"""

import json
import logging
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.kernels.quantized import QuantizedWeight, Weight
from chatserve.model.checkpoint import ConvertedModel, TextAssets
from chatserve.model.config import ModelConfig
from chatserve.model.decoder import check_weights
from chatserve.model.precision import Form, Quantization
from chatserve.model.weight_layout import EMBEDDING

# Raise it whenever names, layout or records of the cached form change.
_FORMAT_VERSION = 2

# What is served, then which version and contents. Version 1 did not name the quantisation.
_CACHE_NAME = re.compile(
    r"(?P<served>(?P<as_version_1>.+-(float32|bfloat16|float16))(-(file|none|int8|int4))?)"
    r"-v[0-9]+-[0-9a-f]{16}\.safetensors",
    re.DOTALL,  # a model's file may be named anything
)

_MANIFEST = "chatserve"

_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, ModelError)
"""What comes of a header that says something else than it should."""

logger = logging.getLogger(__name__)


def cache_name(
    model_name: str, quantization: Quantization, dtype: torch.dtype, fingerprint: str
) -> str:
    """Return the name of the file that holds this source, converted like this."""
    stem = f"{model_name}-{str(dtype).removeprefix('torch.')}-{quantization}"
    return f"{stem}-v{_FORMAT_VERSION}-{fingerprint[:16]}.safetensors"


def read_converted(path: Path) -> ConvertedModel | None:
    """Map a cached model; None when there is none or it is damaged."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            manifest = json.loads(file.metadata()[_MANIFEST])
            forms = {name: Form(value) for name, value in manifest["forms"].items()}
            dtype = file.get_tensor(EMBEDDING).dtype
            converted = ConvertedModel(
                config=ModelConfig.from_dict(manifest["config"]),
                text=TextAssets.from_dict(manifest["text"]),
                forms=forms,
                weights={name: _read(file, name, form, dtype) for name, form in forms.items()},
            )
            check_weights(converted.config, converted.weights)
            return converted
    except (SafetensorError, OSError, *_DAMAGE) as error:
        logger.warning("ignoring the damaged weight cache %s: %s", path, error)
        return None


def write_converted(path: Path, model: ConvertedModel) -> None:
    """Store a model under `path`; a failure costs the next start time and nothing else."""
    try:
        _write(path, model)
        _remove_older(path)
    except (SafetensorError, OSError) as error:
        logger.warning("cannot cache the converted weights in %s: %s", path, error)


def _read(file: Any, name: str, form: Form, dtype: torch.dtype) -> Weight:
    if form is Form.DENSE:
        dense: Tensor = file.get_tensor(name)
        if dense.dtype != dtype:
            raise ValueError(f"{name} is of {dense.dtype}, the embedding of {dtype}")
        return dense
    return QuantizedWeight(
        bits=form.bits,
        codes=file.get_tensor(f"{name}.codes"),
        scales=file.get_tensor(f"{name}.scales"),
        mins=file.get_tensor(f"{name}.mins") if form.has_mins else None,
        dtype=dtype,
    )


def _write(path: Path, model: ConvertedModel) -> None:
    manifest = json.dumps(
        {
            "config": asdict(model.config),
            "text": asdict(model.text),
            "forms": {name: form.value for name, form in model.forms.items()},
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        save_file(_stored_tensors(model), partial, metadata={_MANIFEST: manifest})
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _stored_tensors(model: ConvertedModel) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for name, weight in model.weights.items():
        if isinstance(weight, Tensor):
            tensors[name] = weight
            continue
        tensors |= {f"{name}.codes": weight.codes, f"{name}.scales": weight.scales}
        if weight.mins is not None:
            tensors[f"{name}.mins"] = weight.mins
    return tensors


def _remove_older(path: Path) -> None:
    """Remove files whose names differ from this one's in version and fingerprint only."""
    own = _CACHE_NAME.fullmatch(path.name)
    assert own is not None, f"{path.name!r} is no name of this cache"
    for other in path.parent.iterdir():
        found = _CACHE_NAME.fullmatch(other.name)
        if found and other != path and found["served"] in own.group("served", "as_version_1"):
            other.unlink(missing_ok=True)
            logger.info("removed the outdated weight cache %s", other.name)
