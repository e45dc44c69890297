"""Makes the peers' weights out of the default model's file.

The file was born in 4 bits. Its weights, dequantised and rounded to bfloat16, are what everyone
serves in bfloat16; llama.cpp's own program makes Q8_0 and Q4_0 of them. Owns the translation from
GGUF's names and row orders to those of a Hugging Face folder, which vLLM reads. Files appear under
their final names when they are complete.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, LlamaFileType, dequantize
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.hugging_face import config_fields
from benchmarks.peers.layout import (
    PeerError,
    PeerFolder,
    PeerModel,
    Precision,
    num_cores,
    peer_environ,
)
from chatserve.config import DEFAULT_MODEL
from chatserve.environment import default_data_dir
from chatserve.model.catalog import resolve_model
from chatserve.model.checkpoint import TextAssets
from chatserve.model.config import ModelConfig
from chatserve.model.gguf import open_gguf

_TOP_LEVEL = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}
_MODULES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True, slots=True)
class GGUFField:
    """One entry of a GGUF file's header; `kinds` are gguf's types, an array's elements last."""

    key: str
    value: Any
    kinds: tuple[Any, ...]


def convert_default_model(folder: PeerFolder) -> None:
    """Write the default model as GGUF in three precisions and as a Hugging Face folder.

    Raises:
        ConfigError: The model has not been fetched.
    """
    source = resolve_model(DEFAULT_MODEL, default_data_dir())
    reader = GGUFReader(str(source))
    tensors = {
        tensor.name: torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        for tensor in reader.tensors
    }
    bf16 = folder.gguf(PeerModel.DEFAULT, Precision.BF16)
    if not bf16.exists():
        write_gguf(bf16, "llama", header_fields(reader), tensors)
    for precision in (Precision.Q8_0, Precision.Q4_0):
        _quantise(folder, bf16, folder.gguf(PeerModel.DEFAULT, precision), precision)
    if not folder.hf_weights(PeerModel.DEFAULT).exists():
        checkpoint = open_gguf(source)
        target = folder.hf_folder(PeerModel.DEFAULT)
        write_text_files(target, checkpoint.text)
        write_json(target / "config.json", _llama_config(checkpoint.config))
        write_safetensors(target, _as_halves(tensors, checkpoint.config))


def header_fields(reader: GGUFReader) -> list[GGUFField]:
    """Return what a file says of itself, apart from what every writer sets."""
    return [
        GGUFField(key, field.contents(), tuple(field.types))
        for key, field in reader.fields.items()
        if not key.startswith("GGUF.") and key != "general.architecture"
    ]


def write_gguf(
    path: Path, architecture: str, fields: Iterable[GGUFField], tensors: Mapping[str, Tensor]
) -> None:
    """Write a file with matrices in bfloat16 and vectors in float32."""
    partial = path.with_suffix(".partial")
    writer = GGUFWriter(str(partial), architecture)
    for field in fields:
        is_file_type = field.key == "general.file_type"
        value = int(LlamaFileType.MOSTLY_BF16) if is_file_type else field.value
        inner = field.kinds[-1] if len(field.kinds) > 1 else None
        writer.add_key_value(field.key, value, field.kinds[0], sub_type=inner)
    for name, tensor in tensors.items():
        if tensor.ndim == 1:
            writer.add_tensor(name, tensor.float().numpy())
        else:  # as bytes, since numpy has no bfloat16
            codes = tensor.bfloat16().contiguous().view(torch.uint8).numpy()
            writer.add_tensor(name, codes, raw_dtype=GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(path)


def write_safetensors(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors, given under GGUF's names, for whoever reads Hugging Face folders."""
    named = {hf_name(name): tensor.bfloat16().contiguous() for name, tensor in tensors.items()}
    partial = folder / "model.partial"
    save_file(named, partial, metadata={"format": "pt"})
    partial.rename(folder / "model.safetensors")


def write_text_files(folder: Path, text: TextAssets) -> None:
    """Write a tokenizer as a Hugging Face folder has it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(text.tokenizer_json, encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": text.bos_token,
        "eos_token": text.eos_token,
        "chat_template": text.chat_template,
        "clean_up_tokenization_spaces": False,
    }
    write_json(folder / "tokenizer_config.json", settings)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def hf_name(name: str) -> str:
    """Translate `blk.3.ffn_up.weight` into `model.layers.3.mlp.up_proj.weight`, for instance."""
    if name in _TOP_LEVEL:
        return _TOP_LEVEL[name]
    _, layer, module, kind = name.split(".")
    return f"model.layers.{layer}.{_MODULES[module]}.{kind}"


def _as_halves(tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Undo the order of rotary pairs in which llama files keep the rows of q and k."""
    num_heads = {"attn_q": config.num_heads, "attn_k": config.num_kv_heads}
    halves: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        heads = num_heads.get(name.split(".")[-2])
        # rows as [heads, pair, member] become [heads, member, pair]
        halves[name] = (
            tensor.view(heads, -1, 2, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)
            if heads
            else tensor
        )
    return halves


def _llama_config(config: ModelConfig) -> dict[str, Any]:
    return {
        **config_fields(config),
        "architectures": ["LlamaForCausalLM"],
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
    }


def _quantise(folder: PeerFolder, source: Path, target: Path, precision: Precision) -> None:
    if target.exists():
        return
    programs, partial = folder.llama_programs, target.with_suffix(".partial")
    done = subprocess.run(
        [programs / "llama-quantize", source, partial, precision.upper(), str(num_cores())],
        env=peer_environ(LD_LIBRARY_PATH=str(programs)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PeerError(f"llama-quantize ended with code {done.returncode}:\n{done.stderr[-800:]}")
    partial.rename(target)
