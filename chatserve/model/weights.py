"""Loads a model: finds its format, converts it once, and builds the decoder.

Owns what is known of a loaded model. Knows no request and no KV pool.

Converting a file takes seconds, so its result is kept (`weight_cache`) under a name that says what
it was made from and how: source fingerprint, dtype, quantisation and format version. A source that
changes gets another name, and so a stale cache is never used. Random weights are never kept.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.kernels.ops import Ops
from chatserve.kernels.quantized import Weight
from chatserve.model.checkpoint import Checkpoint, ConvertedModel
from chatserve.model.config import ModelConfig
from chatserve.model.conversion import convert
from chatserve.model.decoder import Decoder
from chatserve.model.dummy import make_dummy
from chatserve.model.gguf import open_gguf
from chatserve.model.gguf_header import is_gguf
from chatserve.model.hf_adapter import open_hf_folder
from chatserve.model.peek import model_name
from chatserve.model.precision import GROUP_SIZE, Quantization, WeightSummary, summarize
from chatserve.model.weight_cache import cache_name, read_converted, write_converted

_FINGERPRINTED_HEADER_BYTES = 1 << 20
_FOLDER_PATTERNS = ("*.json", "*.jinja", "*.safetensors")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run, and what its model card is made from.

    `name` is the file's or folder's name without extension. `fingerprint` changes whenever the
    source does, or the form in which its weights are served. `precision` names that form: bf16,
    int8, Q4_1 and so on. `weight_bytes` are what a decode step reads: all weights but an embedding
    that is not the output head as well.
    """

    name: str
    fingerprint: str
    config: ModelConfig
    precision: str
    weight_bytes: int
    has_own_head: bool
    decoder: Decoder
    tokenizer_json: str
    chat_template: str | None
    bos_token: str | None
    eos_token: str | None
    eos_token_ids: tuple[int, ...]
    adds_bos: bool
    default_temperature: float
    default_top_p: float
    default_top_k: int


def load_model(
    path: Path,
    *,
    dtype: torch.dtype,
    device: str,
    cache_dir: Path,
    ops: Ops,
    quantization: Quantization = Quantization.NONE,
) -> LoadedModel:
    """Load the model at `path`, a GGUF file or a Hugging Face folder.

    Raises:
        ModelError: The source cannot be read or needs something this build lacks.
    """
    fingerprint = f"{source_fingerprint(path)}-{quantization}"
    converted = load_weights(path, dtype=dtype, cache_dir=cache_dir, quantization=quantization)
    return _loaded(path, fingerprint, converted, quantization, device, ops)


def load_dummy(
    folder: Path,
    *,
    dtype: torch.dtype,
    device: str,
    ops: Ops,
    quantization: Quantization,
    spare_tokenizer: Path,
) -> LoadedModel:
    """Make a model of random weights in the shape of the folder's config.json.

    Raises:
        ModelError: The configuration or the tokenizer does not work.
    """
    fingerprint = f"{source_fingerprint(folder)}-dummy-{quantization}"
    dummy = make_dummy(folder, quantization, dtype, spare_tokenizer)
    logger.warning("random weights in the shape of %s: answers are noise", folder)
    return _loaded(folder, fingerprint, dummy, quantization, device, ops)


def load_weights(
    path: Path, *, dtype: torch.dtype, cache_dir: Path, quantization: Quantization
) -> ConvertedModel:
    """Convert the model at `path`, or take it from the cache.

    Raises:
        ModelError: The source cannot be read or needs something this build lacks.
    """
    name = cache_name(model_name(path), quantization, dtype, source_fingerprint(path))
    cache_path = cache_dir / name
    converted = read_converted(cache_path)
    if converted is None:
        converted = convert(_open_checkpoint(path), quantization, dtype)
        write_converted(cache_path, converted)
    return converted


def source_fingerprint(path: Path) -> str:
    """Return a digest over sizes, modification times and headers of the source's files."""
    if not path.exists():
        raise ModelError(f"there is no model at {path}")
    files = [path]
    if path.is_dir():
        files = sorted(file for pattern in _FOLDER_PATTERNS for file in path.glob(pattern))
    digest = hashlib.sha256()
    for file in files:
        stat = file.stat()
        digest.update(f"{file.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
        with file.open("rb") as content:
            digest.update(content.read(_FINGERPRINTED_HEADER_BYTES))
    return digest.hexdigest()


def _open_checkpoint(path: Path) -> Checkpoint:
    if path.is_dir():
        return open_hf_folder(path)
    if is_gguf(path):
        return open_gguf(path)
    raise ModelError(f"{path} is neither a folder nor a GGUF file")


def _loaded(
    path: Path,
    fingerprint: str,
    converted: ConvertedModel,
    quantization: Quantization,
    device: str,
    ops: Ops,
) -> LoadedModel:
    text, dtype_name = converted.text, str(converted.dtype).removeprefix("torch.")
    summary = summarize(converted.config, converted.forms, quantization, dtype_name)
    _log(summary)
    return LoadedModel(
        name=model_name(path),
        fingerprint=fingerprint,
        config=converted.config,
        precision=summary.precision,
        weight_bytes=summary.weight_bytes,
        has_own_head=summary.has_own_head,
        decoder=_build_decoder(converted, device, ops),
        tokenizer_json=text.tokenizer_json,
        chat_template=text.chat_template,
        bos_token=text.bos_token,
        eos_token=text.eos_token,
        eos_token_ids=_known_ids(text.eos_token_ids, converted.config.vocab_size),
        adds_bos=text.adds_bos,
        default_temperature=text.default_temperature,
        default_top_p=text.default_top_p,
        default_top_k=text.default_top_k,
    )


def _known_ids(token_ids: Sequence[int], vocab_size: int) -> tuple[int, ...]:
    """Return the ends of sequence that the model has a logit for; files name others, too."""
    known = tuple(token_id for token_id in token_ids if 0 <= token_id < vocab_size)
    if len(known) < len(token_ids):
        logger.warning("ignoring ends of sequence outside the vocabulary: %s", token_ids)
    return known


def _log(summary: WeightSummary) -> None:
    if summary.num_left_dense:
        logger.info(
            "matrices left dense, since their rows do not divide into groups of %d: %d",
            GROUP_SIZE,
            summary.num_left_dense,
        )


def _build_decoder(converted: ConvertedModel, device: str, ops: Ops) -> Decoder:
    # Taken out one by one: a weight is let go of once it is packed.
    weights: dict[str, Weight] = {}
    while converted.weights:
        name, weight = converted.weights.popitem()
        weights[name] = weight.to(device) if isinstance(weight, Tensor) else weight
    return Decoder(converted.config, weights, ops)
