"""What of a model's words becomes a title, and what a conversation is called without one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatserve.gateway.title_words import MAX_CHARS, QUESTION, title_of
from chatserve.store.sessions import first_words

ASKED = "Why is the sky blue?"
ANSWER = "Blue light is scattered more than red light. So the sky looks blue, not the sea."


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (" Blue skies", "Blue skies"),
        ('  "Blue skies."\nI hope that helps!', "Blue skies"),
        ("Title: **Blue light**", "Blue light"),
        ("\n\n# Conversation title - Blue\tlight", "Blue light"),
        ("The “blue” light", "The blue light"),
        ("Blue \x00\x1b light", "Blue light"),
        ("Why blue?", "Why blue?"),
    ],
)
def test_title_is_one_short_line_without_labels_and_quotes(said: str, title: str) -> None:
    assert title_of(said, ASKED, ANSWER) == title


@pytest.mark.parametrize(
    "said",
    [
        "",
        '""\n...',
        "blue " * 9,
        "blue" * 20,
        "Blue light. More than red light",
        "<|im_end|> Blue light",
        "The `blue` light",
        "Blue light is scattered more than red light",
        "Baking bread at home",
        "Scattered red light",
    ],
)
def test_what_is_long_or_a_sentence_or_marked_up_or_about_something_else_is_no_title(
    said: str,
) -> None:
    assert title_of(said, ASKED, ANSWER) == ""


@pytest.mark.parametrize(
    "said",
    [
        QUESTION,
        QUESTION[:30],
        "GIVE THIS CONVERSATION A TITLE",
        "Title: a short title that names the topic",
        "Here is a short title for this conversation:",
        "This conversation",
    ],
)
def test_question_said_again_is_no_title(said: str) -> None:
    assert title_of(said, QUESTION, said) == ""


@pytest.mark.parametrize(
    "said", ["A title for my essay", "The topic of sleep", "Conversation with a cat"]
)
def test_title_may_share_words_with_the_question(said: str) -> None:
    assert title_of(said, said, "") == said


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("日本の首都", "日本の首都はどこですか"),
        ("冰箱的原理", "冰箱的工作原理是什么？"),
        ("TCP vs UDP", "difference between tcp and udp"),
        ("Planning a party", "Plan a birthday party"),
    ],
)
def test_words_of_a_title_are_found_in_other_forms_and_scripts(said: str, asked: str) -> None:
    assert title_of(said, asked, "") == said


@given(st.text(max_size=300))
def test_any_words_give_a_printable_title_within_the_limit(said: str) -> None:
    title = title_of(said, said, "")

    assert len(title) <= MAX_CHARS
    assert title.isprintable()
    assert title == title.strip()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  Why is\nthe sky blue? ", "Why is the sky blue?"),
        ("word " * 30, "word word word word word word word word word word word…"),
        ("x" * 100, "x" * 59 + "…"),
        ("", ""),
    ],
)
def test_first_words_are_whole_words_and_show_where_there_are_more(text: str, title: str) -> None:
    assert first_words(text) == title
