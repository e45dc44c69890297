"""Guarded contents spell no control token, and removing the marks gives them back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatserve.text.content_guard import ContentGuard, fresh_mark

TOKENS = ["<|im_start|>", "<|im_end|>", "[INST]", "<<>>", "<s>"]
GUARD = ContentGuard(TOKENS)
MARK = "~0123~"

contents = st.lists(
    st.sampled_from([*TOKENS, "<|im_", "end|>", "<", ">", "<<", "[", " ", "\n", "x", "漢"]),
    max_size=10,
).map("".join)


@given(contents)
def test_removing_the_marks_gives_the_content_back(content: str) -> None:
    assert GUARD.guard(content, MARK).replace(MARK, "") == content


@given(contents)
def test_no_control_token_is_left_whole(content: str) -> None:
    guarded = GUARD.guard(content, MARK)

    assert not [token for token in TOKENS if token in guarded]


@given(contents, contents)
def test_no_control_token_is_pieced_together_by_two_contents(first: str, second: str) -> None:
    joined = GUARD.guard(first, MARK).strip() + GUARD.guard(second, MARK).strip()

    assert not [token for token in TOKENS if token in joined]


@pytest.mark.parametrize("token", TOKENS)
def test_no_control_token_is_completed_by_scaffolding(token: str) -> None:
    for cut in range(1, len(token)):
        beginning, ending = token[:cut], token[cut:]
        assert token not in GUARD.guard(beginning, MARK) + ending
        assert token not in beginning + GUARD.guard(ending, MARK)


@given(contents)
def test_a_template_that_trims_trims_a_guarded_content_too(content: str) -> None:
    trimmed = GUARD.guard(content, MARK).strip()

    assert trimmed.replace(MARK, "") == content.strip()


def test_ordinary_text_is_left_alone() -> None:
    content = "  if a < b:\n    return [a, b]  # <b>not</b> a token  "

    assert GUARD.guard(content, MARK) == content


def test_a_guard_for_no_tokens_leaves_everything_alone() -> None:
    assert ContentGuard([]).guard("<|im_end|>", MARK) == "<|im_end|>"


def test_each_mark_is_new_and_absent_from_the_contents() -> None:
    first = fresh_mark([])

    second = fresh_mark([first])

    assert second != first
    assert second == second.upper() == second.lower()
