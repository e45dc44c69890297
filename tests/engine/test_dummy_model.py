"""Random weights in the shape of a config.json: always the same, finite, and never on the disk."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.model_helpers import (
    DecoderRig,
    hf_configs,
    make_hf_model,
    make_tokenizer,
    write_gguf,
    write_hf_folder,
)
from tokenizers import Tokenizer

from chatserve.config import EngineConfig
from chatserve.engine.launch import build_engine
from chatserve.errors import ConfigError, ModelError
from chatserve.kernels.torch_ops import TorchOps
from chatserve.model.catalog import models_dir
from chatserve.model.checkpoint import ConvertedModel
from chatserve.model.dummy import make_dummy
from chatserve.model.precision import Form, Quantization
from chatserve.model.weights import LoadedModel, load_dummy

CONFIGS = hf_configs()


@pytest.fixture
def spare(tmp_path: Path) -> Path:
    """A model in the place of the default one, whose tokenizer has 320 tokens."""
    folder = models_dir(tmp_path / "data")
    folder.mkdir(parents=True)
    return write_gguf(make_hf_model(CONFIGS["plain"]), folder / "smollm2-135m-instruct.gguf")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_config(tmp_path / "shape")


def write_config(folder: Path, name: str = "qwen2", **changes: int) -> Path:
    CONFIGS[name].save_pretrained(folder)
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder


def dummy(
    folder: Path, spare: Path, quantization: Quantization = Quantization.NONE
) -> ConvertedModel:
    return make_dummy(folder, quantization, torch.bfloat16, spare)


def load(folder: Path, spare: Path, quantization: Quantization = Quantization.NONE) -> LoadedModel:
    return load_dummy(
        folder,
        dtype=torch.bfloat16,
        device="cpu",
        ops=TorchOps(),
        quantization=quantization,
        spare_tokenizer=spare,
    )


def test_every_load_draws_the_same_weights(folder: Path, spare: Path) -> None:
    first = dummy(folder, spare).weights

    second = dummy(folder, spare).weights

    assert first.keys() == second.keys()
    for name, weight in first.items():
        again = second[name]
        assert isinstance(weight, torch.Tensor)
        assert isinstance(again, torch.Tensor)
        assert torch.equal(weight, again)


def test_weights_of_one_shape_differ_from_layer_to_layer(folder: Path, spare: Path) -> None:
    weights = dummy(folder, spare).weights

    first, second = (weights[f"layers.{i}.mlp.down_proj.weight"] for i in range(2))

    assert isinstance(first, torch.Tensor)
    assert isinstance(second, torch.Tensor)
    assert not torch.equal(first, second)
    assert first.float().std() == pytest.approx(64**-0.5, rel=0.05)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_stay_finite_and_differ_through_many_layers(
    name: str, tmp_path: Path, spare: Path
) -> None:
    folder = write_config(tmp_path / "deep", name, num_hidden_layers=32)

    logits = DecoderRig(load(folder, spare)).step({0: [1, 17, 250, 3]})[0]

    assert logits.isfinite().all()
    assert 0.1 < logits.std() < 10


def test_a_dummy_can_be_quantised_head_included(tmp_path: Path, spare: Path) -> None:
    folder = write_config(tmp_path / "tied", "tied")

    forms = dummy(folder, spare, Quantization.INT4).forms

    assert forms["lm_head.weight"] is Form.Q8_0
    assert forms["layers.0.mlp.down_proj.weight"] is Form.Q4_1
    assert forms["embed_tokens.weight"] is Form.DENSE


def test_a_tied_head_that_is_quantised_has_the_weights_of_the_embedding(
    tmp_path: Path, spare: Path
) -> None:
    weights = dummy(write_config(tmp_path / "tied", "tied"), spare, Quantization.INT8).weights

    table, head = weights["embed_tokens.weight"], weights["lm_head.weight"]

    assert isinstance(table, torch.Tensor)
    assert not isinstance(head, torch.Tensor)
    assert (head.dequantize(torch.float32) - table.float()).abs().max() < 0.01


def test_a_folder_with_a_tokenizer_uses_its_own(tmp_path: Path) -> None:
    folder = write_hf_folder(make_hf_model(CONFIGS["plain"]), tmp_path / "whole")

    text = dummy(folder, tmp_path / "no spare").text

    assert text.eos_token == "<|im_end|>"


def test_without_a_tokenizer_the_spare_one_is_cut_to_the_vocabulary(
    tmp_path: Path, spare: Path
) -> None:
    whole = make_tokenizer()
    vocab_size = whole.get_vocab_size() - 5
    folder = write_config(tmp_path / "small", vocab_size=vocab_size)

    tokenizer = Tokenizer.from_str(dummy(folder, spare).text.tokenizer_json)

    text = "the cat sat on many pages"
    assert tokenizer.get_vocab_size() == vocab_size
    assert max(tokenizer.encode(text).ids) < vocab_size <= max(whole.encode(text).ids)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_vocabulary_without_room_for_single_bytes_is_refused(tmp_path: Path, spare: Path) -> None:
    folder = write_config(tmp_path / "small", vocab_size=200)

    with pytest.raises(ModelError, match=r"a vocabulary of 200 .* put a tokenizer\.json beside"):
        dummy(folder, spare)


def test_without_any_tokenizer_the_fetch_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no tokenizer\.json.*`chatserve models fetch` brings it"):
        dummy(folder, tmp_path / "missing.gguf")


def test_a_file_is_no_shape(spare: Path) -> None:
    with pytest.raises(ModelError, match="--load-format dummy takes a folder with a config"):
        dummy(spare, spare)


def test_an_engine_of_noise_says_so_and_leaves_nothing_on_the_disk(
    folder: Path, spare: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = EngineConfig(
        model=str(folder),
        data_dir=tmp_path / "data",
        load_format="dummy",
        num_pages=16,
        max_num_seqs=2,
        max_num_batched_tokens=64,
    )

    built = build_engine(config)

    assert built.card.vocab_size == 320
    assert "answers are noise" in caplog.text
    assert not (tmp_path / "data" / "weights").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dtype": "float32"}, "compute in bfloat16, not in float32"),
        ({"cpu_level": "torch"}, "plain torch computes here"),
    ],
)
def test_an_engine_that_cannot_run_quantised_weights_refuses_them(
    folder: Path, spare: Path, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    config = EngineConfig(
        model=str(folder), data_dir=tmp_path / "data", dtype="bfloat16", load_format="dummy"
    )

    with pytest.raises(ConfigError, match=f"--quantization int8: .*{reason}"):
        build_engine(replace(config, quantization="int8", **changes))
