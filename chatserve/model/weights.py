"""Loads a model: finds its format, converts it once, and builds the decoder.

Owns the order of fused weights (query, key, value; gate, up) and the choice of dtype. Knows no
request and no KV pool.

Converting a quantised file takes seconds, so its result is kept (`weight_cache`) under a name that
says what it was made from: source fingerprint, dtype and format version. A source that changes
gets another name, and so a stale cache is never used.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from chatserve.errors import ConfigError, ModelError
from chatserve.kernels.ops import Ops
from chatserve.model.checkpoint import Checkpoint, ReadTensor
from chatserve.model.config import ModelConfig
from chatserve.model.decoder import Decoder
from chatserve.model.gguf import open_gguf
from chatserve.model.gguf_header import is_gguf
from chatserve.model.hf_adapter import open_hf_folder
from chatserve.model.peek import model_name
from chatserve.model.weight_cache import (
    ConvertedModel,
    cache_name,
    read_converted,
    write_converted,
)

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_FINGERPRINTED_HEADER_BYTES = 1 << 20
_FOLDER_PATTERNS = ("*.json", "*.jinja", "*.safetensors")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run, and what its model card is made from.

    `name` is the file's or folder's name without extension. `fingerprint` changes whenever the
    source does.
    """

    name: str
    fingerprint: str
    config: ModelConfig
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
    path: Path, *, dtype: torch.dtype, device: str, cache_dir: Path, ops: Ops
) -> LoadedModel:
    """Load the model at `path`, a GGUF file or a Hugging Face folder.

    Raises:
        ModelError: The source cannot be read or needs something this build lacks.
    """
    fingerprint = source_fingerprint(path)
    converted = _convert_once(path, fingerprint, dtype, cache_dir)
    text = converted.text
    return LoadedModel(
        name=model_name(path),
        fingerprint=fingerprint,
        config=converted.config,
        decoder=_build_decoder(converted, device, ops),
        tokenizer_json=text.tokenizer_json,
        chat_template=text.chat_template,
        bos_token=text.bos_token,
        eos_token=text.eos_token,
        eos_token_ids=text.eos_token_ids,
        adds_bos=text.adds_bos,
        default_temperature=text.default_temperature,
        default_top_p=text.default_top_p,
        default_top_k=text.default_top_k,
    )


def resolve_dtype(name: str, device: str) -> torch.dtype:
    """Return the dtype for `name`; `auto` is bfloat16 where the device computes in it natively."""
    if name == "auto":
        return torch.bfloat16 if _has_native_bfloat16(device) else torch.float32
    if name not in _DTYPES:
        raise ConfigError(f"--dtype: expected auto, {', '.join(_DTYPES)}, received {name!r}")
    return _DTYPES[name]


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


def _has_native_bfloat16(device: str) -> bool:
    if torch.device(device).type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # torch has no public question for this; every CPU with AMX has the instructions asked for
    return torch.cpu._is_avx512_bf16_supported()


def _open_checkpoint(path: Path) -> Checkpoint:
    if path.is_dir():
        return open_hf_folder(path)
    if is_gguf(path):
        return open_gguf(path)
    raise ModelError(f"{path} is neither a folder nor a GGUF file")


def _convert_once(
    path: Path, fingerprint: str, dtype: torch.dtype, cache_dir: Path
) -> ConvertedModel:
    cache_path = cache_dir / cache_name(model_name(path), dtype, fingerprint)
    converted = read_converted(cache_path)
    if converted is None:
        checkpoint = _open_checkpoint(path)
        tensors = dict(_fused_tensors(checkpoint.config, checkpoint.read_tensor, dtype))
        converted = ConvertedModel(checkpoint.config, checkpoint.text, tensors)
        write_converted(cache_path, converted)
    return converted


def _fused_tensors(
    config: ModelConfig, read: ReadTensor, dtype: torch.dtype
) -> Iterator[tuple[str, Tensor]]:
    """Yield every weight under its name in the decoder, in its final dtype."""
    for name, sources in _decoder_sources(config):
        fused = torch.cat([read(source) for source in sources])
        yield name, fused.to(dtype)


def _decoder_sources(config: ModelConfig) -> Iterator[tuple[str, list[str]]]:
    """Yield each decoder weight with the source tensors whose rows it stacks, in order."""
    yield "embed_tokens.weight", ["model.embed_tokens.weight"]
    yield "norm.weight", ["model.norm.weight"]
    if not config.tie_word_embeddings:
        yield "lm_head.weight", ["lm_head.weight"]
    for i in range(config.num_layers):
        ours, theirs = f"layers.{i}", f"model.layers.{i}"
        qkv = [f"{theirs}.self_attn.{name}_proj" for name in ("q", "k", "v")]
        yield f"{ours}.attention_norm.weight", [f"{theirs}.input_layernorm.weight"]
        yield f"{ours}.attention.qkv_proj.weight", [f"{name}.weight" for name in qkv]
        yield f"{ours}.attention.o_proj.weight", [f"{theirs}.self_attn.o_proj.weight"]
        if config.qkv_bias:
            yield f"{ours}.attention.qkv_proj.bias", [f"{name}.bias" for name in qkv]
        if config.o_bias:
            yield f"{ours}.attention.o_proj.bias", [f"{theirs}.self_attn.o_proj.bias"]
        gate_up = [f"{theirs}.mlp.{name}_proj.weight" for name in ("gate", "up")]
        yield f"{ours}.mlp_norm.weight", [f"{theirs}.post_attention_layernorm.weight"]
        yield f"{ours}.mlp.gate_up_proj.weight", gate_up
        yield f"{ours}.mlp.down_proj.weight", [f"{theirs}.mlp.down_proj.weight"]


def _build_decoder(converted: ConvertedModel, device: str, ops: Ops) -> Decoder:
    with torch.device("meta"):  # shapes only: the weights below take their places
        decoder = Decoder(converted.config, ops)
    try:
        decoder.load_state_dict(converted.tensors, assign=True)
    except RuntimeError as error:
        raise ModelError(f"the weights do not fit the configuration: {error}") from error
    decoder.requires_grad_(requires_grad=False).eval().to(device)
    decoder.pack_weights()
    return decoder
