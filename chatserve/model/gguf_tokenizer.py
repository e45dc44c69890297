"""Turns the vocabulary of a GGUF file into a tokenizer of the `tokenizers` library.

Owns the knowledge of how GGUF names pre-tokenizers and marks tokens. Covers byte-level BPE with
the pre-tokenizers listed below, whose splitting rules are known exactly; anything else is refused
by name, since a tokenizer that is nearly right gives answers that are nearly right.
"""

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from chatserve.errors import ModelError
from chatserve.model.checkpoint import TextAssets

Json = dict[str, Any]

# Tokens that end a turn in chat models, for files that name only the end of a text.
_END_OF_TURN_TOKENS = ("<|im_end|>", "<|eot_id|>")


class ReadField(Protocol):
    """Looks up one metadata value of a GGUF file."""

    def __call__(self, key: str, default: Any = None) -> Any: ...


class TokenType(IntEnum):
    """The kinds of vocabulary entries that need more than their place in the list."""

    CONTROL = 3
    USER_DEFINED = 4


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How text is split before merges apply, and what goes with it in a tokenizer file."""

    steps: tuple[Json, ...]
    normalizer: Json | None = None
    ignore_merges: bool = False
    adds_bos: bool = False


def _byte_level(*, use_regex: bool) -> Json:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _split(digits: str) -> Json:
    """Return the splitting rule of the cl100k family, which differ in how they group digits."""
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
        + digits
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }


_PRE_TOKENIZERS = {
    "gpt-2": PreTokenizer((_byte_level(use_regex=True),)),
    "smollm": PreTokenizer(
        ({"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True))
    ),
    "llama-bpe": PreTokenizer(
        (_split(r"\p{N}{1,3}"), _byte_level(use_regex=False)), ignore_merges=True, adds_bos=True
    ),
    "qwen2": PreTokenizer(
        (_split(r"\p{N}"), _byte_level(use_regex=False)), normalizer={"type": "NFC"}
    ),
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens by id, and the kind of each."""

    tokens: list[str]
    types: list[int]

    def of_type(self, *types: TokenType) -> dict[str, int]:
        """Return the ids of all tokens of these kinds."""
        return {
            token: token_id
            for token_id, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True))
            if kind in types
        }


def read_text_assets(field: ReadField) -> TextAssets:
    """Read tokenizer, chat template and special tokens.

    Raises:
        ModelError: The file's tokenizer is of a kind this build does not know exactly.
    """
    pre_tokenizer = _pre_tokenizer(field)
    vocabulary = Vocabulary(field("tokenizer.ggml.tokens"), field("tokenizer.ggml.token_type"))
    merges: list[str] = field("tokenizer.ggml.merges")
    bos_id = field("tokenizer.ggml.bos_token_id")
    eos_id = field("tokenizer.ggml.eos_token_id")
    return TextAssets(
        tokenizer_json=json.dumps(
            _tokenizer(vocabulary, merges, pre_tokenizer), ensure_ascii=False
        ),
        chat_template=field("tokenizer.chat_template"),
        bos_token=None if bos_id is None else vocabulary.tokens[bos_id],
        eos_token=None if eos_id is None else vocabulary.tokens[eos_id],
        eos_token_ids=_eos_token_ids(
            vocabulary, {eos_id, field("tokenizer.ggml.eot_token_id")} - {None}
        ),
        adds_bos=bool(field("tokenizer.ggml.add_bos_token", pre_tokenizer.adds_bos)),
    )


def _pre_tokenizer(field: ReadField) -> PreTokenizer:
    model = field("tokenizer.ggml.model")
    if model != "gpt2":
        raise ModelError(
            f"GGUF tokenizer model {model!r} is not supported, only byte-level BPE ('gpt2') is; "
            "use the model's Hugging Face folder instead"
        )
    name = field("tokenizer.ggml.pre")
    if name not in _PRE_TOKENIZERS:
        raise ModelError(
            f"GGUF pre-tokenizer {name!r} is not supported, only {', '.join(_PRE_TOKENIZERS)} are; "
            "use the model's Hugging Face folder instead"
        )
    return _PRE_TOKENIZERS[name]


def _tokenizer(vocabulary: Vocabulary, merges: list[str], pre_tokenizer: PreTokenizer) -> Json:
    """Return the content of a tokenizer.json file."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocabulary),
        "normalizer": pre_tokenizer.normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": list(pre_tokenizer.steps)},
        "post_processor": None,
        "decoder": _byte_level(use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pre_tokenizer.ignore_merges,
            "vocab": {token: token_id for token_id, token in enumerate(vocabulary.tokens)},
            # byte-level tokens hold no space, so the separator is unambiguous
            "merges": [merge.split(" ", 1) for merge in merges],
        },
    }


def _added_tokens(vocabulary: Vocabulary) -> list[Json]:
    control = vocabulary.of_type(TokenType.CONTROL)
    return [
        {
            "id": token_id,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": token in control,
        }
        for token, token_id in vocabulary.of_type(TokenType.CONTROL, TokenType.USER_DEFINED).items()
    ]


def _eos_token_ids(vocabulary: Vocabulary, named: set[int]) -> tuple[int, ...]:
    """Return the ids the file names, and those of the well-known ends of a turn."""
    control = vocabulary.of_type(TokenType.CONTROL)
    known = {control[token] for token in _END_OF_TURN_TOKENS if token in control}
    return tuple(sorted(named | known))
