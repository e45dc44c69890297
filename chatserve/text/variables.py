"""Variables in a registered text: how they are written, and how values take their places.

Owns the syntax and the bounds. `{{name}}` is a variable; with blanks inside, or with any other
character in the name, it is text like the rest. There is no escape and none is needed: a value is
put in as it is and never looked at again, so a variable's value may be `{{name}}`.
"""

import re
from collections.abc import Mapping

MAX_VARIABLES = 64
MAX_VALUE_CHARS = 16 * 1024

MAX_FILLED_CHARS = 256 * 1024
"""A text may repeat a variable thousands of times, and a long value with it."""

_VARIABLE = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]{0,63})\}\}")


def variables_of(text: str) -> tuple[str, ...]:
    """Return the names of a text's variables, in the order in which they first occur."""
    return tuple(dict.fromkeys(_VARIABLE.findall(text)))


def first_variable_at(text: str) -> int:
    """Return where a text's first variable begins, or the text's end where there is none."""
    found = _VARIABLE.search(text)
    return len(text) if found is None else found.start()


def filled_len(text: str, values: Mapping[str, str]) -> int:
    """Return how many characters `fill` would return."""
    return len(text) + sum(
        len(values[match[1]]) - len(match[0]) for match in _VARIABLE.finditer(text)
    )


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with a value in the place of each variable; there must be one for all."""
    return _VARIABLE.sub(lambda match: values[match[1]], text)
