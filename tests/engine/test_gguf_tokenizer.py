"""The tokenizer, template and special ids that a GGUF file yields."""

from pathlib import Path
from typing import Any

import pytest
from engine.model_helpers import (
    CHAT_TEMPLATE,
    hf_configs,
    make_hf_model,
    make_tokenizer,
    write_gguf,
)
from tokenizers import Tokenizer

from chatserve.errors import ModelError
from chatserve.model.checkpoint import TextAssets
from chatserve.model.gguf import open_gguf
from chatserve.model.gguf_tokenizer import read_text_assets

TEXTS = [
    "",
    "the cat sat on many pages",
    "naïve café, 42 tokens; don't",
    "  two  spaces\n\n\tand tabs ",
    "漢字 и 🤖👩‍👩‍👧",
    "<|im_start|>user\nhello<|im_end|>\n",
]


def read_fields(**fields: Any) -> TextAssets:
    """Read text assets from metadata keys given without their common prefix."""
    tokens = ["<|end_of_text|>", "<|eot_id|>", "a", "b", "ab", "Ġ", "1", "2", "12"]
    metadata: dict[str, Any] = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": tokens,
        "token_type": [3, 3, 1, 1, 1, 1, 1, 1, 1],
        "merges": ["a b", "1 2"],
        "eos_token_id": 0,
        **fields,
    }

    def field(key: str, default: Any = None) -> Any:
        return metadata.get(key.removeprefix("tokenizer.ggml."), default)

    return read_text_assets(field)


@pytest.mark.parametrize("text", TEXTS)
def test_the_rebuilt_tokenizer_gives_the_ids_of_the_original(text: str, tmp_path: Path) -> None:
    file = write_gguf(make_hf_model(hf_configs()["plain"]), tmp_path / "model.gguf")

    rebuilt = Tokenizer.from_str(open_gguf(file).text.tokenizer_json)

    ids = rebuilt.encode(text).ids
    assert ids == make_tokenizer().encode(text).ids
    assert rebuilt.decode(ids, skip_special_tokens=False) == text


def test_template_and_special_tokens_come_along(tmp_path: Path) -> None:
    file = write_gguf(make_hf_model(hf_configs()["plain"]), tmp_path / "model.gguf")

    text = open_gguf(file).text

    assert text.chat_template == CHAT_TEMPLATE
    assert (text.bos_token, text.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert text.eos_token_ids == (2,)
    assert not text.adds_bos


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("gpt-2", ["abc", "Ġ12345", "Ġ!?"]),
        ("smollm", ["abc", "Ġ", "1", "2", "3", "4", "5", "Ġ!?"]),
        ("llama-bpe", ["abc", "Ġ", "123", "45", "Ġ!?"]),
        ("qwen2", ["abc", "Ġ", "1", "2", "3", "4", "5", "Ġ!?"]),
    ],
)
def test_each_pre_tokenizer_splits_numbers_its_own_way(pre: str, pieces: list[str]) -> None:
    tokenizer = Tokenizer.from_str(read_fields(pre=pre).tokenizer_json)

    split = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str("abc 12345 !?")]

    assert split == pieces


def test_llama_3_tokens_beat_merges_and_prompts_begin_with_bos() -> None:
    merges_without_ab = ["1 2"]

    llama3 = read_fields(pre="llama-bpe", merges=merges_without_ab)
    gpt2 = read_fields(pre="gpt-2", merges=merges_without_ab)

    assert Tokenizer.from_str(llama3.tokenizer_json).encode("ab").ids == [4]
    assert Tokenizer.from_str(gpt2.tokenizer_json).encode("ab").ids == [2, 3]
    assert llama3.adds_bos
    assert not gpt2.adds_bos


def test_a_file_may_say_itself_whether_prompts_begin_with_bos() -> None:
    assert not read_fields(pre="llama-bpe", add_bos_token=False).adds_bos
    assert read_fields(pre="gpt-2", add_bos_token=True).adds_bos


def test_the_end_of_a_turn_ends_an_answer_though_the_file_names_another_token() -> None:
    assert read_fields().eos_token_ids == (0, 1)
    assert read_fields(eot_token_id=4).eos_token_ids == (0, 1, 4)


def test_user_defined_tokens_stay_whole_without_being_special() -> None:
    text = read_fields(token_type=[3, 3, 1, 1, 1, 1, 1, 1, 4])

    tokenizer = Tokenizer.from_str(text.tokenizer_json)

    assert tokenizer.encode("a12b").ids == [2, 8, 3]
    assert tokenizer.decode([2, 8, 3], skip_special_tokens=True) == "a12b"
    assert tokenizer.decode([0, 2], skip_special_tokens=True) == "a"


def test_a_tokenizer_without_a_pre_tokenizer_name_is_refused() -> None:
    with pytest.raises(ModelError, match="pre-tokenizer None is not supported"):
        read_fields(pre=None)
