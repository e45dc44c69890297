"""Reads the config.json of a Hugging Face folder.

Owns the mapping from Hugging Face's names of sizes and switches to ours. Never loads torch, so that
a model can be looked at without paying for it; `hf_adapter` reads the folder's other files.
"""

import json
import math
from pathlib import Path
from typing import Any

from chatserve.errors import ModelError
from chatserve.model.config import ModelConfig, as_size, check_architecture

Json = dict[str, Any]


def read_config(folder: Path) -> ModelConfig:
    """Translate config.json.

    Raises:
        ModelError: A file or key is missing, or the model needs something this build lacks.
    """
    fields = read_json(folder / "config.json")
    try:
        check_architecture(fields["model_type"])
        _refuse_unsupported(folder, fields)
        return _model_config(fields)
    except KeyError as error:
        raise ModelError(f"{folder / 'config.json'} lacks the key {error}") from error
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ModelError(f"{folder / 'config.json'} is not what it should be: {error}") from error


def read_json(path: Path) -> Json:
    """Return the object in a JSON file, or raise ModelError."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {path}: {error}") from error
    if not isinstance(fields, dict):
        raise ModelError(f"{path} should hold a JSON object")
    return fields


def _model_config(fields: Json) -> ModelConfig:
    num_heads = as_size("num_attention_heads", fields["num_attention_heads"])
    hidden_size = as_size("hidden_size", fields["hidden_size"])
    head_dim = as_size("head_dim", fields.get("head_dim") or hidden_size // num_heads)
    rope = _rope_parameters(fields)
    is_qwen2 = fields["model_type"] == "qwen2"
    has_bias = bool(fields.get("attention_bias", False))
    return ModelConfig(
        architecture=fields["model_type"],
        vocab_size=fields["vocab_size"],
        hidden_size=hidden_size,
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
