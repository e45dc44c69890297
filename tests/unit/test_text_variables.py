"""Variables in a text: what is one, and what filling them in does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatserve.text.variables import fill, filled_len, first_variable_at, variables_of

names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,5}\Z")
pieces = st.one_of(
    st.text(alphabet="{} ab\n", max_size=4), names.map(lambda name: f"{{{{{name}}}}}")
)
texts = st.lists(pieces, max_size=8).map("".join)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{{a}} {{b}} {{a}}", ("a", "b")),
        ("{{_a1}}", ("_a1",)),
        ("{{{a}}}", ("a",)),
        ("{{" + "a" * 64 + "}}", ("a" * 64,)),
        ("{{" + "a" * 65 + "}}", ()),
        ("{{ a }} {{a.b}} {{1a}} {{}} {a} {{a}", ()),
        ("{{ä}} {{a\n}}", ()),
        ("", ()),
    ],
)
def test_a_variable_is_a_name_in_two_pairs_of_braces(text: str, found: tuple[str, ...]) -> None:
    assert variables_of(text) == found


def test_a_value_stands_wherever_its_variable_stood() -> None:
    assert fill("{{a}}, {{b}} and {{{a}}}", {"a": "x", "b": ""}) == "x,  and {x}"


def test_a_value_is_not_looked_at_again() -> None:
    values = {"a": "{{b}}", "b": r"\1 {{a}}"}

    assert fill("{{a}} {{b}}", values) == r"{{b}} \1 {{a}}"


def test_braces_on_both_sides_of_a_value_make_no_variable_of_it() -> None:
    assert fill("{{{a}}} {{b}}}}", {"a": "{b}", "b": "{{a"}) == "{{b}} {{a}}"


@given(texts, st.text(alphabet="{}ab", max_size=5))
def test_what_is_no_variable_stays_and_the_length_is_known_before(text: str, value: str) -> None:
    values = dict.fromkeys(variables_of(text), value)

    filled = fill(text, values)

    assert len(filled) == filled_len(text, values)
    start = first_variable_at(text)
    assert filled.startswith(text[:start])
    assert (start == len(text)) == (not values)
