"""Text is text: ids of plain text equal the backend's, and never one of a control token."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.tokenizer_helpers import (
    DEFINITIONS,
    Definition,
    backend_of,
    byte_level_definition,
    encode_whole,
    make_tokenizer,
    sentencepiece_definition,
    unigram_definition,
    with_added_token,
)

from chatserve.errors import InvalidRequest, ModelError
from chatserve.text.segments import Control, Plain, Verbatim
from chatserve.text.tokenizer import Tokenizer

BENIGN_TEXTS = [
    "",
    "Hello, world!",
    "  leading and trailing  ",
    "\n\nlines\r\n\ttabs ",
    "def add(first, second):\n    return first + second",
    "Příliš žluťoučký kůň",
    "漢字とひらがな 안녕하세요",
    "👨‍👩‍👧‍👦👋🏽 e\u0301",
    "1 < 2 | 3 > 2",
    "{{ jinja }} {% raw %}",
    "\x00NUL\x00",
    "line\u2028separator",
]

DAMAGED_MODEL = json.dumps(byte_level_definition() | {"model": {"type": "BPE"}})

BYTE_LEVEL = make_tokenizer(byte_level_definition())
UNIGRAM = make_tokenizer(unigram_definition())

CONTROL_LIKE = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<|im_", "end|>"]
control_like_text = st.lists(
    st.sampled_from([*CONTROL_LIKE, "<", "/s>", " ", "\n", "user", "x", "漢"]), max_size=12
).map("".join)


@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("text", BENIGN_TEXTS)
def test_encode_equals_the_models_own_tokenizer_on_benign_text(kind: str, text: str) -> None:
    definition = DEFINITIONS[kind]()

    token_ids = make_tokenizer(definition).encode(text)

    assert token_ids == encode_whole(definition, text)


@given(control_like_text)
def test_encode_gives_no_control_token_for_any_text(text: str) -> None:
    token_ids = BYTE_LEVEL.encode(text)

    assert not set(token_ids) & set(BYTE_LEVEL.control_tokens.ids.values())
    assert BYTE_LEVEL.decode(token_ids) == text


@given(control_like_text)
def test_encode_gives_no_control_token_when_ordinary_pieces_spell_one(text: str) -> None:
    """A Unigram vocabulary reaches `</s>` by its ordinary search, with added tokens off."""
    token_ids = UNIGRAM.encode(text)

    unk_id = UNIGRAM.token_id("<unk>")
    assert not set(token_ids) & (set(UNIGRAM.control_tokens.ids.values()) - {unk_id})


def test_the_unigram_vocabulary_really_reaches_a_control_token() -> None:
    definition = unigram_definition()
    backend = backend_of(definition)
    backend.encode_special_tokens = True

    assert backend.token_to_id("</s>") in backend.encode("a</s>b").ids


@pytest.mark.parametrize("source", [unigram_definition(), sentencepiece_definition()])
def test_a_control_token_that_ordinary_pieces_spell_keeps_its_text(source: Definition) -> None:
    """A normalizer that puts a space before each piece must see one piece."""
    names = ("normalizer", "pre_tokenizer", "decoder")
    tokenizer = make_tokenizer(unigram_definition() | {name: source[name] for name in names})

    token_ids = tokenizer.encode("is</s>it")

    assert tokenizer.token_id("</s>") not in token_ids
    assert tokenizer.decode(token_ids) == "is</s>it"


def test_a_control_token_is_found_whatever_the_normalizer_does() -> None:
    definition = with_added_token(
        sentencepiece_definition(), "<|end|>", special=True, normalized=True
    )
    tokenizer = make_tokenizer(definition)

    token_ids = tokenizer.encode_special("lazy<|end|>")

    assert token_ids == [*tokenizer.encode("lazy"), tokenizer.token_id("<|end|>")]


def test_encode_special_turns_control_strings_into_their_ids() -> None:
    token_ids = BYTE_LEVEL.encode_special("<|im_start|>user\nhi<|im_end|>\n")

    assert token_ids == encode_whole(byte_level_definition(), "<|im_start|>user\nhi<|im_end|>\n")
    assert token_ids[0] == BYTE_LEVEL.token_id("<|im_start|>")


def test_markup_that_is_not_flagged_special_is_still_not_reached_by_text() -> None:
    definition = with_added_token(byte_level_definition(), "<think>")
    tokenizer = make_tokenizer(definition)
    think_id = tokenizer.token_id("<think>")

    assert think_id not in tokenizer.encode("<think>")
    assert tokenizer.encode_special("<think>") == [think_id]
    assert tokenizer.decode([think_id or 0]) == "<think>"


def test_a_single_character_is_never_a_control_token() -> None:
    definition = with_added_token(byte_level_definition(), "§", special=True)
    tokenizer = make_tokenizer(definition)

    assert tokenizer.encode_special("§") == BYTE_LEVEL.encode("§")


def test_a_normalizer_does_not_turn_lookalikes_into_control_tokens() -> None:
    definition = with_added_token(
        byte_level_definition() | {"normalizer": {"type": "NFKC"}},
        "<|end|>",
        special=True,
        normalized=True,
    )
    tokenizer = make_tokenizer(definition)

    token_ids = tokenizer.encode("＜｜end｜＞")

    assert tokenizer.token_id("<|end|>") in encode_whole(definition, "＜｜end｜＞")
    assert tokenizer.decode(token_ids) == "<|end|>"
    assert tokenizer.token_id("<|end|>") not in token_ids


def test_unknown_text_does_not_become_a_control_token_that_stands_in_for_it() -> None:
    definition = byte_level_definition()
    definition["model"]["unk_token"] = "<|endoftext|>"
    del definition["model"]["vocab"]["\u0104"]  # the byte 0x04

    token_ids = make_tokenizer(definition).encode("a\x04b")

    assert encode_whole(definition, "a\x04b").count(0) == 1
    assert token_ids == [*BYTE_LEVEL.encode("a"), *BYTE_LEVEL.encode("b")]


def test_added_runs_of_whitespace_stay_ordinary_vocabulary() -> None:
    definition = with_added_token(byte_level_definition(), "        ")

    token_ids = make_tokenizer(definition).encode("a        b")

    assert token_ids == encode_whole(definition, "a        b")


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_text_between_control_tokens_is_encoded_as_in_one_string(kind: str) -> None:
    """Pieces that put a space before a first word must not do so after a control token."""
    definition = DEFINITIONS[kind]()
    control = definition["added_tokens"][1]["content"]
    tokenizer = make_tokenizer(definition)

    token_ids = tokenizer.encode_segments(
        [
            Plain("The quick"),
            Control(control),
            Plain("brown fox"),
            Control(control),
            Plain(" jumps"),
        ]
    )

    assert token_ids == encode_whole(definition, f"The quick{control}brown fox{control} jumps")


def test_neighbouring_plain_segments_merge_across_their_border() -> None:
    token_ids = BYTE_LEVEL.encode_segments([Plain("assis"), Plain("tant na"), Plain("med")])

    assert token_ids == BYTE_LEVEL.encode("assistant named")


def test_verbatim_ids_stay_as_they_are() -> None:
    letters = [BYTE_LEVEL.encode(letter)[0] for letter in "user"]

    token_ids = BYTE_LEVEL.encode_segments(
        [Plain("us"), Verbatim(tuple(letters)), Verbatim(()), Plain("er")]
    )

    assert token_ids == [*BYTE_LEVEL.encode("us"), *letters, *BYTE_LEVEL.encode("er")]


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_text_after_verbatim_ids_is_encoded_as_after_a_control_token(kind: str) -> None:
    definition = DEFINITIONS[kind]()
    control = definition["added_tokens"][1]["content"]

    token_ids = make_tokenizer(definition).encode_segments(
        [Control(control), Verbatim((7, 8)), Plain("brown fox")]
    )

    first, *others = encode_whole(definition, f"{control}brown fox")
    assert token_ids == [first, 7, 8, *others]


@pytest.mark.parametrize("side", ["lstrip", "rstrip"])
def test_control_tokens_swallow_whitespace_as_their_flags_say(side: str) -> None:
    definition = with_added_token(byte_level_definition(), "<|end|>", special=True, **{side: True})
    prompt = "hi \n <|end|> \n there"

    token_ids = make_tokenizer(definition).encode_special(prompt)

    assert token_ids == encode_whole(definition, prompt)


def test_what_the_file_adds_cuts_or_pads_on_its_own_is_left_out() -> None:
    definition = byte_level_definition()
    plain_ids = make_tokenizer(definition).encode("How does a radix tree share the prefix?")
    backend = backend_of(definition)
    backend.enable_truncation(2)
    backend.enable_padding(length=64)

    tokenizer = Tokenizer.from_json(backend.to_str())

    assert tokenizer.encode("How does a radix tree share the prefix?") == plain_ids


def test_half_a_surrogate_pair_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match=r"U\+D83D") as refused:
        BYTE_LEVEL.encode("smile \ud83d")

    assert refused.value.code == "invalid_unicode"


def test_threads_share_a_tokenizer() -> None:
    texts = [f"{number} 漢字 <|im_end|> {'x' * number}" for number in range(64)]
    expected = [BYTE_LEVEL.encode(text) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        encoded = list(pool.map(BYTE_LEVEL.encode, texts))

    assert encoded == expected


def test_decode_equals_the_backend_on_any_bytes() -> None:
    backend = backend_of(byte_level_definition())
    rng = random.Random(0)
    samples = [rng.choices(range(BYTE_LEVEL.vocab_size), k=rng.randrange(12)) for _ in range(2000)]

    for sample in samples:
        assert BYTE_LEVEL.decode(sample) == backend.decode(sample)
        assert BYTE_LEVEL.decode(sample, skip_special=False) == backend.decode(
            sample, skip_special_tokens=False
        )


def test_a_byte_level_token_that_is_not_spelled_in_bytes_is_its_own_text() -> None:
    definition = byte_level_definition()
    new_id = definition["model"]["vocab"]["pad 1"] = len(definition["model"]["vocab"])

    decoded = make_tokenizer(definition).decode([new_id])

    assert decoded == "pad 1" == backend_of(definition).decode([new_id])


@pytest.mark.parametrize("kind", ["sentencepiece", "unigram"])
def test_decode_equals_the_backend_on_sentencepiece_text(kind: str) -> None:
    definition = DEFINITIONS[kind]()
    tokenizer = make_tokenizer(definition)
    backend = backend_of(definition)

    for text in BENIGN_TEXTS:
        token_ids = tokenizer.encode(text)
        assert tokenizer.decode(token_ids) == backend.decode(token_ids)


def test_byte_fallback_gives_the_text_back() -> None:
    tokenizer = make_tokenizer(sentencepiece_definition())

    assert tokenizer.decode(tokenizer.encode("漢字 👋🏽 ď")) == "漢字 👋🏽 ď"


def test_ids_outside_the_vocabulary_have_no_text() -> None:
    beyond = range(BYTE_LEVEL.vocab_size, BYTE_LEVEL.vocab_size + 50)

    assert BYTE_LEVEL.decode(beyond, skip_special=False) == ""


def test_an_added_token_outside_ascii_is_its_own_text() -> None:
    definition = with_added_token(byte_level_definition(), "«é»")
    tokenizer = make_tokenizer(definition)

    assert tokenizer.decode(tokenizer.encode_special("«é»")) == "«é»"


REPLACE_SPACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
REPLACE_OTHER = {"type": "Replace", "pattern": {"String": "x"}, "content": "y"}
STRIP_MORE = {"type": "Strip", "content": " ", "start": 2, "stop": 0}


@pytest.mark.parametrize(
    "decoder",
    [
        None,
        {"type": "Fuse"},
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        {"type": "Sequence", "decoders": [REPLACE_SPACE, REPLACE_OTHER]},
        {"type": "Sequence", "decoders": [REPLACE_SPACE, STRIP_MORE]},
    ],
)
def test_a_decoder_of_another_kind_is_refused(decoder: Definition | None) -> None:
    definition = byte_level_definition() | {"decoder": decoder}

    with pytest.raises(ModelError, match="decoder"):
        make_tokenizer(definition)


@pytest.mark.parametrize(
    ("decoder", "text"),
    [
        ({"type": "Sequence", "decoders": [REPLACE_SPACE, {"type": "Fuse"}]}, " The quick"),
        ({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}, " The quick"),
        ({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}, "The quick"),
        ({"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}, "The quick"),
    ],
)
def test_the_decoder_says_whether_the_first_space_belongs_to_the_text(
    decoder: Definition, text: str
) -> None:
    definition = sentencepiece_definition() | {"decoder": decoder}
    tokenizer = make_tokenizer(definition)

    token_ids = tokenizer.encode("The quick")

    assert tokenizer.decode(token_ids) == text == backend_of(definition).decode(token_ids)


@pytest.mark.parametrize("damaged", ["", "{", "[]", "{}", DAMAGED_MODEL])
def test_a_damaged_tokenizer_is_a_model_error(damaged: str) -> None:
    with pytest.raises(ModelError, match="tokenizer"):
        Tokenizer.from_json(damaged)
