"""Reads a model from a Hugging Face folder: config.json, safetensors and tokenizer files.

Owns the mapping from Hugging Face's configuration to ours. Only safetensors are read, never a
pickle: opening a model must not be able to run code.
"""

import json
import math
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.model.checkpoint import Checkpoint, TextAssets
from chatserve.model.config import ModelConfig, check_architecture

Json = dict[str, Any]

_INDEX = "model.safetensors.index.json"
_SINGLE_FILE = "model.safetensors"


def open_hf_folder(folder: Path) -> Checkpoint:
    """Open a Hugging Face model folder without reading its tensors yet."""
    config = read_config(folder)
    return Checkpoint(config, _read_text_assets(folder), ShardedTensors(folder).read)


def read_config(folder: Path) -> ModelConfig:
    """Translate config.json.

    Raises:
        ModelError: A file or key is missing, or the model needs something this build lacks.
    """
    fields = _read_json(folder / "config.json")
    try:
        check_architecture(fields["model_type"])
        _refuse_unsupported(folder, fields)
        return _model_config(fields)
    except KeyError as error:
        raise ModelError(f"{folder / 'config.json'} lacks the key {error}") from error


class ShardedTensors:
    """The safetensors files of a folder, seen as one collection of named tensors.

    Owns: the open files, for as long as tensors are read.
    Used from: model loading.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._shards: dict[str, Any] = {}
        self._shard_of: dict[str, str] | None = None
        if (folder / _INDEX).exists():
            self._shard_of = _read_json(folder / _INDEX)["weight_map"]
        elif not (folder / _SINGLE_FILE).exists():
            raise ModelError(f"{folder} has neither {_SINGLE_FILE} nor {_INDEX}")

    def read(self, name: str) -> Tensor:
        """Return a tensor as it is stored, backed by the mapped file."""
        shard_name = _SINGLE_FILE if self._shard_of is None else self._shard_of.get(name)
        if shard_name is None:
            raise ModelError(f"{self._folder / _INDEX} names no file for tensor {name!r}")
        try:
            tensor: Tensor = self._shard(shard_name).get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ModelError(f"cannot read {name!r} from {self._folder}: {error}") from error
        return tensor

    def _shard(self, shard_name: str) -> Any:
        if shard_name not in self._shards:
            self._shards[shard_name] = safe_open(self._folder / shard_name, framework="pt")
        return self._shards[shard_name]


def _model_config(fields: Json) -> ModelConfig:
    num_heads = fields["num_attention_heads"]
    head_dim = fields.get("head_dim") or fields["hidden_size"] // num_heads
    rope = _rope_parameters(fields)
    is_qwen2 = fields["model_type"] == "qwen2"
    has_bias = bool(fields.get("attention_bias", False))
    return ModelConfig(
        architecture=fields["model_type"],
        vocab_size=fields["vocab_size"],
        hidden_size=fields["hidden_size"],
        intermediate_size=fields["intermediate_size"],
        num_layers=fields["num_hidden_layers"],
        num_heads=num_heads,
        num_kv_heads=fields.get("num_key_value_heads") or num_heads,
        head_dim=head_dim,
        max_position_embeddings=fields["max_position_embeddings"],
        rms_norm_eps=fields["rms_norm_eps"],
        rope_theta=float(rope.get("rope_theta", 10_000.0)),
        rope_factors=_rope_factors(rope, head_dim),
        tie_word_embeddings=bool(fields.get("tie_word_embeddings", False)),
        # Qwen2 always has these biases and has no key for them
        qkv_bias=is_qwen2 or has_bias,
        o_bias=has_bias,
    )


def _rope_parameters(fields: Json) -> Json:
    """Return the rotary settings, which older files spread over two top-level keys."""
    nested = fields.get("rope_parameters") or fields.get("rope_scaling") or {}
    return {"rope_theta": fields.get("rope_theta", 10_000.0), **nested}


def _rope_factors(rope: Json, head_dim: int) -> tuple[float, ...]:
    """Return what scaling divides the frequency of each rotary pair by.

    Llama 3 keeps fast frequencies, divides slow ones by `factor`, and blends between: a pair that
    turns `low_freq_factor` times or less within the original context counts as slow, one that
    turns `high_freq_factor` times or more as fast.
    """
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return ()
    if kind != "llama3":
        raise ModelError(f"rotary scaling {kind!r} is not supported, only 'llama3' is")
    factors = []
    for pair in range(head_dim // 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (2 * pair / head_dim)
        turns = rope["original_max_position_embeddings"] / wavelength
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        kept = min(max((turns - low) / (high - low), 0.0), 1.0)
        factors.append(1.0 / (kept + (1.0 - kept) / rope["factor"]))
    return tuple(factors)


def _refuse_unsupported(folder: Path, fields: Json) -> None:
    window = fields.get("sliding_window")
    uses_window = window is not None and fields.get("use_sliding_window", True)
    if uses_window and window < fields.get("max_position_embeddings", 0):
        raise ModelError(f"{folder}: sliding-window attention ({window} tokens) is not supported")
    if fields.get("mlp_bias"):
        raise ModelError(f"{folder}: biases in the MLP are not supported")
    if fields.get("hidden_act", "silu") != "silu":
        raise ModelError(f"{folder}: activation {fields['hidden_act']!r} is not supported")


def _read_text_assets(folder: Path) -> TextAssets:
    tokenizer = _read_tokenizer(folder / "tokenizer.json")
    settings = _read_optional_json(folder / "tokenizer_config.json")
    generation = _read_optional_json(folder / "generation_config.json")
    bos_token = _token_string(settings.get("bos_token"))
    eos_token = _token_string(settings.get("eos_token"))
    eos_ids = generation.get("eos_token_id", tokenizer.token_to_id(eos_token or ""))
    return TextAssets(
        tokenizer_json=tokenizer.to_str(),
        chat_template=_read_chat_template(folder, settings),
        bos_token=bos_token,
        eos_token=eos_token,
        eos_token_ids=_as_ids(eos_ids),
        adds_bos=_adds_bos(tokenizer, bos_token),
        default_temperature=generation.get("temperature", 1.0),
        default_top_p=generation.get("top_p", 1.0),
        default_top_k=generation.get("top_k", 0),
    )


def _read_tokenizer(file: Path) -> Tokenizer:
    if not file.exists():
        raise ModelError(f"{file.parent} has no tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"cannot read {file}: {error}") from error
    # Left over from training, these would silently cut prompts or fill them up.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _read_chat_template(folder: Path, settings: Json) -> str | None:
    """Return the template from its own file or from the tokenizer's settings, in this order."""
    own_file = folder / "chat_template.jinja"
    if own_file.exists():
        return own_file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several named templates
        named = {entry["name"]: entry["template"] for entry in template}
        template = named.get("default")
    return template


def _adds_bos(tokenizer: Tokenizer, bos_token: str | None) -> bool:
    """Return whether the tokenizer itself puts the token before a raw prompt."""
    if bos_token is None:
        return False
    encoded: list[int] = tokenizer.encode("").ids
    return encoded[:1] == [tokenizer.token_to_id(bos_token)]


def _token_string(entry: str | Json | None) -> str | None:
    """Return a special token's text, which may be given as a record of the token's properties."""
    return entry["content"] if isinstance(entry, dict) else entry


def _as_ids(entry: int | list[int] | None) -> tuple[int, ...]:
    if entry is None:
        return ()
    return tuple(entry) if isinstance(entry, list) else (entry,)


def _read_json(path: Path) -> Json:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {path}: {error}") from error
    if not isinstance(fields, dict):
        raise ModelError(f"{path} should hold a JSON object")
    return fields


def _read_optional_json(path: Path) -> Json:
    return _read_json(path) if path.exists() else {}
