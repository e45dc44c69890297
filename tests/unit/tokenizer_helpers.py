"""Small tokenizers of every supported kind, trained from a seed text, and the cards around them.

The definitions are parsed `tokenizer.json` files. `encode_whole` is the reference that prompts are
compared with: a model's own tokenizer over one string, control tokens found wherever they stand.
"""

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import tokenizers
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from chatserve.engine.api import ModelCard
from chatserve.text.tokenizer import Tokenizer

Definition = dict[str, Any]

SMOLLM2_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# Any character, a pair's halves left out. `st.text` would first build its table of all of Unicode.
any_character = st.integers(0, 0x10FFFF - 0x800).map(lambda n: chr(n if n < 0xD800 else n + 0x800))

CHATML_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SENTENCEPIECE_SPECIAL = ["<unk>", "<s>", "</s>"]

_SEED_TEXT = (
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face.",
    "system user assistant developer\n",
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind it at all.",
    "def add(first, second):\n    return first + second\n\n\nprint(add(1, 2))\n",
    "How does a radix tree share the prefix of two sequences? It splits the node.",
    "Ein Bär läuft über die Brücke. Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "漢字とひらがなとカタカナ。 你好，世界！ 안녕하세요 привет мир 👋👋🏽 👨‍👩‍👧‍👦",
    "<html><body>1 < 2 and 3 > 2</body></html> | im_start | im_end | <s> </s>",
)


@cache
def _train_byte_level() -> str:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        min_frequency=1,
        special_tokens=CHATML_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(_SEED_TEXT * 2, trainer)
    return backend.to_str()


@cache
def _train_sentencepiece_bpe() -> str:
    backend = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1, right=0),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=SENTENCEPIECE_SPECIAL, show_progress=False
    )
    words = [word for line in _SEED_TEXT[:5] for word in line.split(" ")]
    backend.train_from_iterator(words * 2, trainer)
    definition = json.loads(backend.to_str())
    vocabulary = definition["model"]["vocab"]
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    return json.dumps(definition)


@cache
def _train_unigram() -> str:
    backend = tokenizers.Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    backend.decoder = decoders.Metaspace(prepend_scheme="first")
    trainer = trainers.UnigramTrainer(
        vocab_size=300,
        special_tokens=SENTENCEPIECE_SPECIAL,
        unk_token="<unk>",
        show_progress=False,
    )
    backend.train_from_iterator(_SEED_TEXT * 2, trainer)
    return backend.to_str()


def byte_level_definition() -> Definition:
    """Return byte-level BPE with the ChatML tokens, the kind of the default model."""
    definition: Definition = json.loads(_train_byte_level())
    return definition


def sentencepiece_definition() -> Definition:
    """Return BPE over text with byte fallback and a space put in front of each piece."""
    definition: Definition = json.loads(_train_sentencepiece_bpe())
    return definition


def unigram_definition() -> Definition:
    """Return a Unigram model, which lists its control tokens among its ordinary pieces."""
    definition: Definition = json.loads(_train_unigram())
    return definition


DEFINITIONS: dict[str, Callable[[], Definition]] = {
    "byte_level": byte_level_definition,
    "sentencepiece": sentencepiece_definition,
    "unigram": unigram_definition,
}


def with_added_token(definition: Definition, content: str, **flags: bool) -> Definition:
    """Return a copy with one more added token at the end of the vocabulary."""
    extended = copy.deepcopy(definition)
    token: dict[str, Any] = {
        "id": backend_of(definition).get_vocab_size(),
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": False,
    }
    extended["added_tokens"].append(token | flags)
    return extended


def make_tokenizer(definition: Definition) -> Tokenizer:
    return Tokenizer.from_json(json.dumps(definition))


def backend_of(definition: Definition) -> tokenizers.Tokenizer:
    """Return the `tokenizers` backend, a new one each time."""
    return tokenizers.Tokenizer.from_str(json.dumps(definition))


def encode_whole(definition: Definition, text: str) -> list[int]:
    """Return the ids that the model's own tokenizer gives for a rendered prompt."""
    backend = _cached_backend(json.dumps(definition))
    return list(backend.encode(text, add_special_tokens=False).ids)


@cache
def _cached_backend(tokenizer_json: str) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(tokenizer_json)


def make_card(definition: Definition, **fields: Any) -> ModelCard:
    """Return a card around a tokenizer; `fields` override those of a plain ChatML model."""
    defaults: dict[str, Any] = {
        "name": "tiny",
        "max_model_len": 1024,
        "max_prompt_tokens": 1024,
        "vocab_size": backend_of(definition).get_vocab_size(),
        "tokenizer_json": json.dumps(definition),
        "chat_template": SMOLLM2_TEMPLATE,
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "eos_token_ids": (2,),
        "adds_bos": False,
    }
    return ModelCard(**(defaults | fields))
