"""A table for people: headings, and a line for each thing.

Owns the layout. Cells are text by then; what a stranger wrote may hold no control characters.
"""

from collections.abc import Iterable, Sequence

NOTHING = "-"


def as_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return headings and rows in columns that are as wide as their widest cell."""
    lines = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(_line(cells, widths) for cells in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip() + "\n"
