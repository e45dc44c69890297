"""What of a model's words becomes a title."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatserve.gateway.titles import MAX_CHARS, QUESTION, clean_title


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Blue skies", "Blue skies"),
        ('  "Blue skies."\nI hope that helps!', "Blue skies"),
        ("Title: **Blue skies**", "Blue skies"),
        ("\n\n# Conversation title - Blue\tskies", "Blue skies"),
        ("“Блакитне небо”", "Блакитне небо"),
        ("Blue \x00\x1b skies", "Blue skies"),
        ("", ""),
        ('""\n...', ""),
        ("word " * 30, "word word word word word word word word word word word word"),
        ("x" * 100, "x" * 60),
    ],
)
def test_title_is_one_short_line_without_labels_and_quotes(said: str, title: str) -> None:
    assert clean_title(said) == title


@pytest.mark.parametrize(
    "said",
    [
        QUESTION,
        QUESTION[:24],
        "At the most six words, no quotes, nothing else",
        '"WRITE A SHORT TITLE FOR THIS CONVERSATION"',
        "Title: at most six words",
        "Here is a title for this conversation:",
        "This conversation",
    ],
)
def test_question_said_again_is_no_title(said: str) -> None:
    assert clean_title(said) == ""


@pytest.mark.parametrize(
    "said",
    [
        "Write a story",
        "A title for my essay",
        "Nothing else matters",
        "Words",
        "Six quotes of Kant",
    ],
)
def test_title_may_share_words_with_the_question(said: str) -> None:
    assert clean_title(said) == said


@given(st.text(max_size=300))
def test_any_words_give_a_printable_title_within_the_limit(said: str) -> None:
    title = clean_title(said)

    assert len(title) <= MAX_CHARS
    assert title.isprintable()
    assert title == title.strip()
