"""A table for people: headings, and a line for each thing.

Owns the layout. Cells are text by then; what a stranger wrote may hold no control characters.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

NOTHING = "-"


def as_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return headings and rows in columns that are as wide as their widest cell."""
    return "".join(f"{line}\n" for line in aligned(headings, rows))


def aligned(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [_line(cells, widths) for cells in lines]


def day_of(time_s: int) -> str:
    """Return the day of a time in seconds since 1970, as UTC has it."""
    return datetime.fromtimestamp(time_s, UTC).date().isoformat()


def moment_of(time_s: int) -> str:
    """Return the day and the minute of a time in seconds since 1970, as UTC has them."""
    return f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%d %H:%M}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()
