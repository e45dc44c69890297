"""Text while it arrives: whole characters only, whatever the grouping of tokens."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.tokenizer_helpers import (
    any_character,
    byte_level_definition,
    make_tokenizer,
    sentencepiece_definition,
    unigram_definition,
)

from chatserve.text.detokenizer import IncrementalDetokenizer
from chatserve.text.tokenizer import Tokenizer

BYTE_LEVEL = make_tokenizer(byte_level_definition())
SENTENCEPIECE = make_tokenizer(sentencepiece_definition())
UNIGRAM = make_tokenizer(unigram_definition())
TOKENIZERS = [BYTE_LEVEL, SENTENCEPIECE, UNIGRAM]

FAMILY = "👨‍👩‍👧‍👦"


def byte_ids(text: str) -> list[int]:
    """Return one token per byte of `text`."""
    by_bytes = {
        BYTE_LEVEL.decode_bytes([i], skip_special=False): i for i in range(BYTE_LEVEL.vocab_size)
    }
    return [by_bytes[bytes([byte])] for byte in text.encode()]


def stream(tokenizer: Tokenizer, groups: Sequence[Sequence[int]]) -> list[str]:
    detokenizer = IncrementalDetokenizer(tokenizer)
    return [*(detokenizer.push(group) for group in groups), detokenizer.finish()]


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3), (3, 1), (1, 1, 1, 1)])
def test_a_four_byte_character_comes_out_whole_however_it_is_split(sizes: tuple[int, ...]) -> None:
    token_ids = iter(byte_ids("👋"))
    groups = [[next(token_ids) for _ in range(size)] for size in sizes]

    deltas = stream(BYTE_LEVEL, groups)

    assert deltas == [""] * (len(sizes) - 1) + ["👋", ""]


@pytest.mark.parametrize("text", [FAMILY, "ďábel", "漢字", "e\u0301", "\u2028", "\ufffd"])
def test_one_token_per_byte_never_shows_half_a_character(text: str) -> None:
    deltas = stream(BYTE_LEVEL, [[token_id] for token_id in byte_ids(text)])

    assert "".join(deltas) == text
    assert [delta for delta in deltas if delta] == list(text)


def test_an_answer_cut_within_a_character_ends_with_one_replacement_character() -> None:
    deltas = stream(BYTE_LEVEL, [[token_id] for token_id in byte_ids("a👋")[:-1]])

    assert deltas == ["a", "", "", "", "\ufffd"]


def test_bytes_that_nothing_can_complete_are_shown_at_once() -> None:
    broken = [byte_ids("漢")[0], *byte_ids("a")]

    deltas = stream(BYTE_LEVEL, [[token_id] for token_id in broken])

    assert deltas == ["", "\ufffda", ""]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["byte_level", "sentencepiece", "unigram"])
@given(data=st.data())
def test_joined_deltas_equal_the_full_decode_for_every_grouping(
    tokenizer: Tokenizer, data: st.DataObject
) -> None:
    one_id = st.integers(0, tokenizer.vocab_size + 2)
    groups = data.draw(st.lists(st.lists(one_id, max_size=4), max_size=12))

    deltas = stream(tokenizer, groups)

    assert "".join(deltas) == tokenizer.decode([each for group in groups for each in group])


@given(st.lists(any_character, max_size=40).map("".join))
def test_streamed_text_equals_what_was_encoded(text: str) -> None:
    deltas = stream(BYTE_LEVEL, [[token_id] for token_id in BYTE_LEVEL.encode(text)])

    assert "".join(deltas) == text


@pytest.mark.parametrize("text", ["The quick brown", " two  spaces", f"{FAMILY} 漢字 ďábel"])
def test_sentencepiece_streams_spaces_and_byte_tokens(text: str) -> None:
    deltas = stream(SENTENCEPIECE, [[token_id] for token_id in SENTENCEPIECE.encode(text)])

    assert "".join(deltas) == text


def test_interleaved_answers_do_not_touch_each_other() -> None:
    texts = [FAMILY, "漢字漢字漢字漢字漢", "Příliš žluťoučký"]
    detokenizers = [IncrementalDetokenizer(BYTE_LEVEL) for _ in texts]
    answers = ["" for _ in texts]

    for step in zip(*(byte_ids(text)[:20] for text in texts), strict=True):
        for index, token_id in enumerate(step):
            answers[index] += detokenizers[index].push([token_id])

    expected = [text.encode()[:20].decode(errors="ignore") for text in texts]
    assert answers == expected


def test_special_tokens_are_no_text_unless_asked_for() -> None:
    token_ids = [*BYTE_LEVEL.encode("hi"), 2]

    assert IncrementalDetokenizer(BYTE_LEVEL).push(token_ids) == "hi"
    shown = IncrementalDetokenizer(BYTE_LEVEL, skip_special=False).push(token_ids)
    assert shown == "hi<|im_end|>"


def test_a_special_token_within_a_character_does_not_break_it() -> None:
    first, second, third = byte_ids("漢")

    assert "".join(stream(BYTE_LEVEL, [[first], [2], [second, third]])) == "漢"
