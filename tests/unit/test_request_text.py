"""From a request's tokens to what may be shown."""

import pytest
from unit.tokenizer_helpers import (
    Definition,
    byte_level_definition,
    make_tokenizer,
    sentencepiece_definition,
)

from chatserve.engine.api import FinishReason, SamplingParams
from chatserve.engine.request_text import RequestText

TOKENIZER = make_tokenizer(byte_level_definition())


def push_all(text: str, **sampling: object) -> tuple[str, bool]:
    """Push a text token by token until it ends or a stop string ends it."""
    params = SamplingParams(max_tokens=99, seed=0, **sampling)  # type: ignore[arg-type]
    request_text, shown = RequestText(TOKENIZER, params), ""
    token_ids = TOKENIZER.encode(text)
    for index, token_id in enumerate(token_ids):
        is_last = index == len(token_ids) - 1
        shown += request_text.push(token_id, FinishReason.LENGTH if is_last else None)
        if request_text.stopped:
            break
    return shown, request_text.stopped


def test_a_stop_string_ends_the_text_before_itself() -> None:
    assert push_all("one two three", stop=(" two",)) == ("one", True)


@pytest.mark.parametrize("min_tokens", [5, 20])
def test_a_stop_string_is_text_until_min_tokens_are_reached(min_tokens: int) -> None:
    text = "x y z x y z x y z x y z x y z x y z"
    shown, stopped = push_all(text, stop=("z",), min_tokens=min_tokens)

    assert stopped
    assert len(TOKENIZER.encode(shown)) >= min_tokens - 1


def test_the_token_that_stops_a_request_is_no_text() -> None:
    request_text = RequestText(TOKENIZER, SamplingParams(max_tokens=9, seed=0))
    letter = TOKENIZER.encode("a")[0]

    shown = request_text.push(letter, None) + request_text.push(letter, FinishReason.STOP)

    assert shown == "a"


@pytest.mark.parametrize(
    "definition", [byte_level_definition(), sentencepiece_definition()], ids=["bytes", "pieces"]
)
def test_cut_text_and_what_goes_on_with_it_are_the_uncut_text(definition: Definition) -> None:
    tokenizer = make_tokenizer(definition)
    text = "the lazy dog 漢字 jumps"
    token_ids = tokenizer.encode(text)
    params = SamplingParams(max_tokens=99, seed=0)

    for cut in range(1, len(token_ids)):
        begun = RequestText(tokenizer, params)
        rest = RequestText(tokenizer, params, token_ids[:cut])
        shown = "".join(begun.push(each, None) for each in token_ids[: cut - 1])
        shown += begun.push(token_ids[cut - 1], FinishReason.LENGTH)
        shown += "".join(rest.push(each, None) for each in token_ids[cut:])

        assert shown == text


def test_half_a_character_is_told_only_where_the_answer_has_ended() -> None:
    params = SamplingParams(max_tokens=9, seed=0)
    half = TOKENIZER.encode("漢")[0]
    cut, ended = RequestText(TOKENIZER, params), RequestText(TOKENIZER, params)

    assert cut.push(half, FinishReason.LENGTH) == ""
    assert ended.push(half, None) + ended.push(half, FinishReason.STOP) == "\ufffd"
