"""A model of random weights in the shape of Qwen2.5-0.5B, with the default model's tokenizer.

The default model is small, and what a server does around the model weighs more with it than it does
elsewhere. This one is four times as large and means nothing. chatserve makes its weights up
(`--load-format dummy`) and needs only the folder's JSON files; the peers read theirs.

The vocabulary is the default model's, filled up with tokens that no text is split into. Their text
can be seen, so that no answer is silent.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader, GGUFValueType, LlamaFileType
from torch import Tensor

from benchmarks.peers.layout import PeerFolder, PeerModel, Precision
from benchmarks.peers.weights import (
    GGUFField,
    header_fields,
    write_gguf,
    write_json,
    write_safetensors,
    write_text_files,
)
from chatserve.config import DEFAULT_MODEL
from chatserve.environment import default_data_dir
from chatserve.model.catalog import resolve_model
from chatserve.model.checkpoint import TextAssets
from chatserve.model.gguf import open_gguf

VOCAB_SIZE = 151_936
_HIDDEN = 896
_INTERMEDIATE = 4864
_NUM_LAYERS = 24
_NUM_HEADS = 14
_NUM_KV_HEADS = 2
_HEAD_DIM = 64
_CONTEXT = 32_768
_ROPE_THETA = 1e6
_NORM_EPS = 1e-6
_STD = 0.02  # of weights that nobody trained
_NORMAL_TOKEN = 1  # in GGUF's list of token types


def write_config_folder(folder: Path) -> Path:
    """Write the model without weights: sizes and tokenizer; return `folder`.

    Raises:
        ConfigError: The default model, whose tokenizer it has, has not been fetched.
    """
    text = open_gguf(_default_model()).text
    write_text_files(folder, replace(text, tokenizer_json=_padded_tokenizer(text)))
    write_json(folder / "config.json", _config())
    return folder


def write_peer_files(folder: PeerFolder) -> None:
    """Write the same random weights as a bf16 GGUF file and as a Hugging Face folder."""
    target = write_config_folder(folder.hf_folder(PeerModel.QWEN_SHAPE))
    tensors = dict(_random_tensors())
    bf16 = folder.gguf(PeerModel.QWEN_SHAPE, Precision.BF16)
    write_gguf(bf16, "qwen2", _gguf_fields(GGUFReader(str(_default_model()))), tensors)
    write_safetensors(target, tensors)


def filled_up(tokens: list[str]) -> list[str]:
    """Return a vocabulary of `VOCAB_SIZE` that begins with `tokens`."""
    return tokens + [f"<unused{token_id}>" for token_id in range(len(tokens), VOCAB_SIZE)]


def _default_model() -> Path:
    return resolve_model(DEFAULT_MODEL, default_data_dir())


def _padded_tokenizer(text: TextAssets) -> str:
    tokenizer = json.loads(text.tokenizer_json)
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    tokens = filled_up(sorted(vocabulary, key=vocabulary.__getitem__))
    tokenizer["model"]["vocab"] = {token: token_id for token_id, token in enumerate(tokens)}
    return json.dumps(tokenizer)


def _config() -> dict[str, Any]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "vocab_size": VOCAB_SIZE,
        "hidden_size": _HIDDEN,
        "intermediate_size": _INTERMEDIATE,
        "num_hidden_layers": _NUM_LAYERS,
        "num_attention_heads": _NUM_HEADS,
        "num_key_value_heads": _NUM_KV_HEADS,
        "max_position_embeddings": _CONTEXT,
        "rms_norm_eps": _NORM_EPS,
        "rope_theta": _ROPE_THETA,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }


def _gguf_fields(source: GGUFReader) -> list[GGUFField]:
    """Return the header: the shape, and the tokenizer of `source` filled up."""
    uint32, float32 = (GGUFValueType.UINT32,), (GGUFValueType.FLOAT32,)
    fields = [field for field in header_fields(source) if field.key.startswith("tokenizer.")]
    return [
        GGUFField("general.name", "random weights", (GGUFValueType.STRING,)),
        GGUFField("general.file_type", int(LlamaFileType.MOSTLY_BF16), uint32),
        GGUFField("qwen2.block_count", _NUM_LAYERS, uint32),
        GGUFField("qwen2.context_length", _CONTEXT, uint32),
        GGUFField("qwen2.embedding_length", _HIDDEN, uint32),
        GGUFField("qwen2.feed_forward_length", _INTERMEDIATE, uint32),
        GGUFField("qwen2.attention.head_count", _NUM_HEADS, uint32),
        GGUFField("qwen2.attention.head_count_kv", _NUM_KV_HEADS, uint32),
        GGUFField("qwen2.attention.layer_norm_rms_epsilon", _NORM_EPS, float32),
        GGUFField("qwen2.rope.freq_base", _ROPE_THETA, float32),
        *(_filled_up_field(field) for field in fields),
    ]


def _filled_up_field(field: GGUFField) -> GGUFField:
    if field.key == "tokenizer.ggml.tokens":
        return replace(field, value=filled_up(field.value))
    if field.key == "tokenizer.ggml.token_type":
        missing = VOCAB_SIZE - len(field.value)
        return replace(field, value=[*field.value, *[_NORMAL_TOKEN] * missing])
    return field


def _random_tensors() -> Iterator[tuple[str, Tensor]]:
    """Yield every weight under its name in a GGUF file, bfloat16; norms scale by one."""
    generator = torch.Generator().manual_seed(0)
    for name, shape in _shapes():
        if "norm" in name:
            yield name, torch.ones(shape, dtype=torch.bfloat16)
        else:
            empty = torch.empty(shape, dtype=torch.bfloat16)
            yield name, empty.normal_(std=_STD, generator=generator)


def _shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "token_embd.weight", (VOCAB_SIZE, _HIDDEN)
    yield "output_norm.weight", (_HIDDEN,)
    kv_size = _NUM_KV_HEADS * _HEAD_DIM
    for layer in range(_NUM_LAYERS):
        block = f"blk.{layer}"
        for norm in ("attn_norm", "ffn_norm"):
            yield f"{block}.{norm}.weight", (_HIDDEN,)
        for projection, size in (("attn_q", _HIDDEN), ("attn_k", kv_size), ("attn_v", kv_size)):
            yield f"{block}.{projection}.weight", (size, _HIDDEN)
            yield f"{block}.{projection}.bias", (size,)
        yield f"{block}.attn_output.weight", (_HIDDEN, _HIDDEN)
        for projection in ("ffn_gate", "ffn_up"):
            yield f"{block}.{projection}.weight", (_INTERMEDIATE, _HIDDEN)
        yield f"{block}.ffn_down.weight", (_HIDDEN, _INTERMEDIATE)
