"""GGUF files: the same weights as the Hugging Face folder, and clear refusals."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from engine.model_helpers import (
    assert_same_tensors,
    hf_configs,
    load,
    load_tensors,
    make_hf_model,
    write_gguf,
    write_hf_folder,
)

from chatserve.errors import ModelError
from chatserve.model.gguf import open_gguf
from chatserve.model.gguf_header import is_gguf

CONFIGS = hf_configs()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_gguf_file_loads_the_very_weights_of_the_folder(name: str, tmp_path: Path) -> None:
    model = make_hf_model(CONFIGS[name])
    expected = load_tensors(write_hf_folder(model, tmp_path / "folder"), tmp_path / "cache")

    received = load_tensors(write_gguf(model, tmp_path / "file.gguf"), tmp_path / "cache")

    assert_same_tensors(received, expected)


@pytest.mark.parametrize("name", ["plain", "tied", "attention-bias", "qwen2"])
def test_a_gguf_file_gives_the_configuration_of_the_folder(name: str, tmp_path: Path) -> None:
    model = make_hf_model(CONFIGS[name])
    from_folder = load(write_hf_folder(model, tmp_path / "folder"), tmp_path / "cache").config

    from_file = open_gguf(write_gguf(model, tmp_path / "file.gguf")).config

    # GGUF stores this one in float32
    assert from_file.rms_norm_eps == pytest.approx(from_folder.rms_norm_eps)
    assert {**from_file.to_dict(), "rms_norm_eps": 0} == {
        **from_folder.to_dict(),
        "rms_norm_eps": 0,
    }


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q5_0", "Q5_1"])
def test_matrices_that_no_kernel_takes_as_they_are_become_float32(
    kind: str, tmp_path: Path
) -> None:
    quantise = gguf.GGMLQuantizationType[kind]
    model = make_hf_model(CONFIGS["qwen2"])
    file = write_gguf(model, tmp_path / "file.gguf", quantise=quantise)

    read = open_gguf(file).read_tensor("model.layers.1.mlp.up_proj.weight")

    original = model.state_dict()["model.layers.1.mlp.up_proj.weight"].numpy()
    expected = gguf.dequantize(gguf.quantize(original, quantise), quantise)
    assert isinstance(read, torch.Tensor)
    assert read.dtype == torch.float32
    assert torch.equal(read, torch.from_numpy(expected))


def test_a_gguf_file_is_known_by_its_magic_bytes_whatever_its_name(tmp_path: Path) -> None:
    file = write_gguf(make_hf_model(CONFIGS["plain"]), tmp_path / "weights.bin")

    assert is_gguf(file)
    assert load(file, tmp_path / "cache").name == "weights"


def test_a_file_that_only_ends_in_gguf_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"PK\x03\x04 something else")

    with pytest.raises(ModelError, match="neither a folder nor a GGUF file"):
        load(file, tmp_path / "cache")


@pytest.mark.parametrize("kept_share", [0.0001, 0.3, 0.9])
def test_a_truncated_file_is_refused(kept_share: float, tmp_path: Path) -> None:
    file = write_gguf(make_hf_model(CONFIGS["plain"]), tmp_path / "model.gguf")
    content = file.read_bytes()
    file.write_bytes(content[: max(8, int(len(content) * kept_share))])

    with pytest.raises(ModelError, match="not a readable GGUF file"):
        load(file, tmp_path / "cache")


def test_an_unknown_architecture_is_refused_by_name_with_those_that_work(tmp_path: Path) -> None:
    model = make_hf_model(CONFIGS["plain"])
    file = write_gguf(
        model,
        tmp_path / "model.gguf",
        customise=lambda writer: writer.add_string("general.architecture", "mamba"),
    )

    with pytest.raises(ModelError, match=r"'mamba' is not supported.*llama, mistral, qwen2"):
        load(file, tmp_path / "cache")


@pytest.mark.parametrize(
    ("customise", "message"),
    [
        (lambda writer: writer.add_rope_dimension_count(4), "only full rotation"),
        (
            lambda writer: writer.add_rope_scaling_type(gguf.RopeScalingType.YARN),
            "rotary scaling 'yarn' is not supported",
        ),
        (
            lambda writer: writer.add_tensor("rope_freqs.weight", np.ones(4, np.int32)),
            "stored as I32, which this build cannot read",
        ),
        (
            lambda writer: writer.add_tokenizer_model("llama"),
            "tokenizer model 'llama' is not supported",
        ),
        (
            lambda writer: writer.add_tokenizer_pre("tekken"),
            "pre-tokenizer 'tekken' is not supported.*smollm",
        ),
    ],
    ids=["partial-rotation", "yarn", "unknown-encoding", "sentencepiece", "unknown-pre-tokenizer"],
)
def test_what_this_build_lacks_is_refused_by_name(
    customise: object, message: str, tmp_path: Path
) -> None:
    assert callable(customise)
    file = write_gguf(make_hf_model(CONFIGS["plain"]), tmp_path / "model.gguf", customise=customise)

    with pytest.raises(ModelError, match=message):
        load(file, tmp_path / "cache")


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    model = make_hf_model(CONFIGS["plain"])
    checkpoint = open_gguf(write_gguf(model, tmp_path / "model.gguf"))

    with pytest.raises(ModelError, match=r"no tensor 'blk\.7\.ffn_up\.weight'"):
        checkpoint.read_tensor("model.layers.7.mlp.up_proj.weight")
