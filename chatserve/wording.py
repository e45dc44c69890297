"""How numbers are put into sentences.

Owns singular and plural. Knows nothing of what is counted.
"""


def counted(number: int, noun: str) -> str:
    """Return the number with its noun: "1 decode", "1,024 decodes"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
