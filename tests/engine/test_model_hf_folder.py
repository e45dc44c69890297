"""Hugging Face folders: sharding, text files, and clear refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
from engine.model_helpers import (
    CHAT_TEMPLATE,
    assert_same_tensors,
    hf_configs,
    load,
    load_tensors,
    make_hf_model,
    make_tokenizer,
    write_hf_folder,
)
from tokenizers import Tokenizer, processors

from chatserve.errors import ModelError
from chatserve.model.hf_adapter import open_hf_folder
from chatserve.model.hf_config import read_config

CONFIGS = hf_configs()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_hf_folder(make_hf_model(CONFIGS["plain"]), tmp_path / "tiny-model")


def edit_json(file: Path, **changes: Any) -> None:
    """Replace keys; a value of None removes the key."""
    fields = json.loads(file.read_text()) if file.exists() else {}
    merged = {**fields, **changes}
    file.write_text(json.dumps({key: value for key, value in merged.items() if value is not None}))


def test_a_sharded_folder_equals_a_single_file(folder: Path, tmp_path: Path) -> None:
    sharded = write_hf_folder(
        make_hf_model(CONFIGS["plain"]), tmp_path / "sharded", max_shard_size="40kB"
    )
    assert len(list(sharded.glob("*.safetensors"))) > 1

    expected = load_tensors(folder, tmp_path / "cache")
    received = load_tensors(sharded, tmp_path / "cache")

    assert_same_tensors(received, expected)


def test_the_model_is_named_after_its_folder(folder: Path, tmp_path: Path) -> None:
    assert load(folder, tmp_path / "cache").name == "tiny-model"


def test_older_files_spread_rotary_settings_over_two_keys(folder: Path) -> None:
    scaling = {
        "type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    edit_json(
        folder / "config.json", rope_parameters=None, rope_theta=500_000.0, rope_scaling=scaling
    )

    config = read_config(folder)

    assert config.rope_theta == 500_000.0
    assert config.rope_factors[-1] == pytest.approx(8.0)


def test_a_template_file_wins_over_the_one_in_the_settings(folder: Path) -> None:
    edit_json(folder / "tokenizer_config.json", chat_template="from the settings")
    assert open_hf_folder(folder).text.chat_template == CHAT_TEMPLATE

    (folder / "chat_template.jinja").unlink()

    assert open_hf_folder(folder).text.chat_template == "from the settings"


def test_of_several_named_templates_the_default_is_taken(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    templates = [
        {"name": "tool_use", "template": "tools"},
        {"name": "default", "template": "plain"},
    ]
    edit_json(folder / "tokenizer_config.json", chat_template=templates)

    assert open_hf_folder(folder).text.chat_template == "plain"


def test_a_folder_without_a_template_has_none(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()

    assert open_hf_folder(folder).text.chat_template is None


def test_generation_defaults_and_end_tokens_come_from_the_generation_config(folder: Path) -> None:
    edit_json(
        folder / "generation_config.json", temperature=0.6, top_p=0.9, top_k=20, eos_token_id=[2, 0]
    )

    text = open_hf_folder(folder).text

    assert (text.default_temperature, text.default_top_p, text.default_top_k) == (0.6, 0.9, 20)
    assert text.eos_token_ids == (2, 0)


def test_without_a_generation_config_the_tokenizer_names_the_end(folder: Path) -> None:
    (folder / "generation_config.json").unlink()

    text = open_hf_folder(folder).text

    assert text.eos_token_ids == (2,)
    assert (text.default_temperature, text.default_top_p, text.default_top_k) == (1.0, 1.0, 0)


def test_special_tokens_may_be_given_as_records(folder: Path) -> None:
    edit_json(folder / "tokenizer_config.json", bos_token={"content": "<|im_start|>"})

    assert open_hf_folder(folder).text.bos_token == "<|im_start|>"


def test_whether_prompts_begin_with_bos_is_what_the_tokenizer_does(folder: Path) -> None:
    assert not open_hf_folder(folder).text.adds_bos
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))

    assert open_hf_folder(folder).text.adds_bos


def test_a_tokenizer_left_truncating_by_its_training_does_not_truncate(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(max_length=3)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))

    read = Tokenizer.from_str(open_hf_folder(folder).text.tokenizer_json)

    assert (
        read.encode("the cat sat on the mat").ids
        == make_tokenizer().encode("the cat sat on the mat").ids
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gemma3"}, r"'gemma3' is not supported.*llama, mistral, qwen2"),
        ({"model_type": None}, "lacks the key 'model_type'"),
        ({"hidden_size": None}, "lacks the key 'hidden_size'"),
        ({"num_key_value_heads": 3}, "4 attention heads cannot share 3 KV heads"),
        ({"sliding_window": 64}, "sliding-window attention"),
        ({"mlp_bias": True}, "biases in the MLP"),
        ({"hidden_act": "gelu"}, "activation 'gelu'"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rotary scaling 'yarn'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_this_build_lacks_is_refused_by_name(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    edit_json(folder / "config.json", **changes)

    with pytest.raises(ModelError, match=message):
        read_config(folder)


@pytest.mark.parametrize("content", ["{", "[]", "\udcff"], ids=["cut-off", "no-object", "no-utf8"])
def test_a_broken_config_file_is_refused(folder: Path, content: str) -> None:
    (folder / "config.json").write_bytes(content.encode("utf-8", "surrogateescape"))

    with pytest.raises(ModelError, match=r"config\.json"):
        read_config(folder)


def test_a_folder_with_only_pickled_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")

    with pytest.raises(ModelError, match=r"neither model\.safetensors nor"):
        open_hf_folder(folder)


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()

    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        open_hf_folder(folder)


def test_a_broken_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": {"type": "Unheard"}}')

    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        open_hf_folder(folder)


def test_a_missing_tensor_is_named(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.layers\.9\.mlp\.up_proj\.weight"):
        open_hf_folder(folder).read_tensor("model.layers.9.mlp.up_proj.weight")


def test_weights_of_other_sizes_than_configured_are_refused(folder: Path, tmp_path: Path) -> None:
    edit_json(folder / "config.json", intermediate_size=128)

    with pytest.raises(ModelError, match="do not fit the configuration"):
        load(folder, tmp_path / "cache")
