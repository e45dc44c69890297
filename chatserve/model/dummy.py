"""A model of random weights in any shape, to measure speed without the real weights.

Owns the noise and where such a model's tokenizer comes from. Its answers mean nothing; its steps
take as long as those of a trained model of the same shape.

Weights are drawn in bfloat16 with a spread of 1 / sqrt(in_features), at which a matrix product
keeps the size of what comes in, so that activations stay finite through any number of layers. A
weight depends on its name and shape only: every load draws the same model.
"""

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.model.checkpoint import ConvertedModel, TextAssets
from chatserve.model.conversion import to_form
from chatserve.model.gguf_header import GGUFHeader
from chatserve.model.gguf_tokenizer import read_text_assets
from chatserve.model.hf_adapter import read_text_files
from chatserve.model.hf_config import read_config
from chatserve.model.precision import Quantization, served_forms, stored_dense
from chatserve.model.weight_layout import EMBEDDING, weight_shapes


def make_dummy(
    folder: Path, quantization: Quantization, dtype: torch.dtype, spare_tokenizer: Path
) -> ConvertedModel:
    """Make a model of the shape in the folder's config.json.

    Args:
        folder: Holds config.json, and tokenizer files or none.
        quantization: As for a real model; the weights are dense by themselves.
        dtype: Of what stays dense.
        spare_tokenizer: A GGUF file whose tokenizer serves where the folder has none.

    Raises:
        ModelError: The configuration or the tokenizer does not work.
    """
    if not folder.is_dir():
        raise ModelError(f"--load-format dummy takes a folder with a config.json, not {folder}")
    config = read_config(folder)
    forms = served_forms(config, stored_dense, quantization)
    shapes = weight_shapes(config)
    drawn_as = {name: EMBEDDING if name not in shapes else name for name in forms}
    weights = {
        name: to_form([_draw(drawn_as[name], shapes[drawn_as[name]])], form, dtype)
        for name, form in forms.items()
    }
    text = _text_assets(folder, config.vocab_size, spare_tokenizer)
    return ConvertedModel(config, text, forms, weights)


def _draw(name: str, shape: tuple[int, ...]) -> Tensor:
    drawn = torch.empty(shape, dtype=torch.bfloat16)
    if len(shape) == 1 and name.endswith(".weight"):  # a norm's
        return drawn.fill_(1.0)
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return drawn.normal_(std=shape[-1] ** -0.5, generator=generator)


def _text_assets(folder: Path, vocab_size: int, spare_tokenizer: Path) -> TextAssets:
    if (folder / "tokenizer.json").exists():
        return read_text_files(folder)
    if not spare_tokenizer.exists():
        raise ModelError(
            f"{folder} has no tokenizer.json, and the default model, whose tokenizer would serve, "
            "is not there either: `chatserve models fetch` brings it"
        )
    return _cut(read_text_assets(GGUFHeader(spare_tokenizer).field), vocab_size)


def _cut(text: TextAssets, vocab_size: int) -> TextAssets:
    """Leave out the tokens that the model has no embedding for.

    In byte-level BPE these come from the latest merges. Single bytes must all be there.
    """
    tokenizer: dict[str, Any] = json.loads(text.tokenizer_json)
    model = tokenizer["model"]
    kept = {token: token_id for token, token_id in model["vocab"].items() if token_id < vocab_size}
    if any(len(token) == 1 for token in model["vocab"].keys() - kept.keys()):
        raise ModelError(
            f"a vocabulary of {vocab_size} has no room for the single bytes of the default "
            "model's tokenizer; put a tokenizer.json beside the config.json"
        )
    model["vocab"] = kept
    model["merges"] = [pair for pair in model["merges"] if kept.keys() >= {*pair, "".join(pair)}]
    tokenizer["added_tokens"] = [
        token for token in tokenizer["added_tokens"] if token["id"] < vocab_size
    ]
    return replace(text, tokenizer_json=json.dumps(tokenizer, ensure_ascii=False))
