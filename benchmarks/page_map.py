"""A picture of which request sees which page, as SVG.

Owns what is drawn where. Takes page tables and copies as the engine had them and computes nothing
that they do not say. No fact is told by colour alone.

    page tables    one row of cells per request: logical page i in column i, in it the physical
                   page's number; the coloured part is filled, the rest of the cell is still empty
    copies         an arrow from the page that was read to the private page that was written;
                   a bar in the new page marks the tokens that came along
    pool           every physical page in use, by number, with the letters of its holders
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.step_samples import fills
from benchmarks.stepped_engine import PageTable
from benchmarks.svg import arrow, document, rect, text
from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PageCopy

CELL_WIDTH, CELL_HEIGHT = 24, 30
MIN_TILE_STEP, TILE_HEIGHT, TILE_GAP = 42, 38, 20
MIN_WIDTH, MARGIN, LABEL_WIDTH = 760, 28, 104
TABLES_TOP, ROW_STEP = 158, 66
NUM_COLOURS = 3


@dataclass(frozen=True, slots=True)
class PageMap:
    """The pages of a few running requests between two steps.

    `copies` are those that made a page of one of these requests. `notes` are lines for the reader
    under the title.
    """

    page_size: int
    tables: Sequence[PageTable]
    copies: Sequence[PageCopy]
    title: str
    notes: Sequence[str] = ()

    def holders(self, page_id: PageId) -> list[PageTable]:
        return [table for table in self.tables if page_id in table.page_ids]

    def pages(self) -> list[PageId]:
        """Return every page in use once, in the pool's order."""
        return sorted({page_id for table in self.tables for page_id in table.page_ids})

    def colour(self, page_id: PageId) -> str:
        first, *others = self.holders(page_id)
        return "shared" if others else f"own{self.tables.index(first) % NUM_COLOURS}"

    def fill(self, page_id: PageId) -> float:
        """Return the filled share of a page, by whoever filled most of it."""
        return max(_fill(table, page_id, self.page_size) for table in self.holders(page_id))

    def copies_shown(self) -> list[PageCopy]:
        pages = set(self.pages())
        return [copy for copy in self.copies if {copy.source, copy.destination} <= pages]


def _fill(table: PageTable, page_id: PageId, page_size: int) -> float:
    counts = fills(table.num_tokens, page_size)
    index = table.page_ids.index(page_id)
    return counts[index] / page_size if index < len(counts) else 0.0


def draw(page_map: PageMap) -> str:
    """Return the picture as the text of an SVG file."""
    columns = max(len(table.page_ids) for table in page_map.tables)
    width = max(MIN_WIDTH, 2 * MARGIN + LABEL_WIDTH + columns * CELL_WIDTH)
    pool = _Pool(page_map, width - 2 * MARGIN)
    body = [
        *_header(page_map),
        *_page_tables(page_map),
        *_shared_brackets(page_map),
        *_copies_between_rows(page_map),
        *pool.draw(),
    ]
    return document(page_map.title, " ".join(page_map.notes), (width, pool.bottom + MARGIN), body)


def _header(page_map: PageMap) -> Iterator[str]:
    yield text(MARGIN, 36, page_map.title, "title")
    for index, note in enumerate(page_map.notes):
        yield text(MARGIN, 58 + 18 * index, note, "note")
    x, y = float(MARGIN), 104.0
    for colour, label in _legend(page_map):
        yield rect(x, y - 11, 16, 14, colour)
        yield rect(x, y - 11, 16, 14, "frame")
        yield text(x + 22, y, label, "note")
        x += 44 + 5.8 * len(label)
    if page_map.copies_shown():
        yield f'<path class="copy" d="M{x:g} {y - 4:g} h22" marker-end="url(#tip)"/>'
        yield text(x + 30, y, "copied on write", "note")


def _legend(page_map: PageMap) -> Iterator[tuple[str, str]]:
    if any(page_map.colour(page_id) == "shared" for page_id in page_map.pages()):
        yield "shared", "shared: one copy for all its holders"
    for index, table in enumerate(page_map.tables):
        yield f"own{index % NUM_COLOURS}", f"{table.name} alone"
    yield "empty", "slots not filled yet"


# ── Page tables ──────────────────────────────────────────────────────────────────────────────


def _row_top(row: int) -> float:
    return TABLES_TOP + row * ROW_STEP


def _column_left(column: int) -> float:
    return MARGIN + LABEL_WIDTH + column * CELL_WIDTH


def _page_tables(page_map: PageMap) -> Iterator[str]:
    yield text(
        MARGIN, TABLES_TOP - 18, "Page tables: what each request sees, in tokens and pages", "head"
    )
    for row, table in enumerate(page_map.tables):
        top = _row_top(row)
        num_answered = max(0, table.num_tokens - table.num_prompt_tokens)
        yield text(MARGIN, top + 21, table.name, "name")
        yield text(MARGIN + 22, top + 12, f"prompt {table.num_prompt_tokens}", "note")
        yield text(MARGIN + 22, top + 28, f"answer {num_answered}", "note")
        for column, page_id in enumerate(table.page_ids):
            yield from _cell(page_map, table, page_id, _column_left(column), top)


def _cell(
    page_map: PageMap, table: PageTable, page_id: PageId, left: float, top: float
) -> Iterator[str]:
    filled = CELL_WIDTH * _fill(table, page_id, page_map.page_size)
    yield rect(left, top, CELL_WIDTH, CELL_HEIGHT, "empty")
    yield rect(left, top, filled, CELL_HEIGHT, page_map.colour(page_id))
    yield from _copied_bar(page_map, page_id, left, top + CELL_HEIGHT, CELL_WIDTH)
    yield rect(left, top, CELL_WIDTH, CELL_HEIGHT, "frame")
    yield text(left + CELL_WIDTH / 2, top + 19, str(page_id), "number")


def _copied_bar(
    page_map: PageMap, page_id: PageId, left: float, bottom: float, width: float
) -> Iterator[str]:
    for copy in page_map.copies_shown():
        if copy.destination == page_id:
            share = copy.num_tokens / page_map.page_size
            yield rect(left, bottom - 4, width * share, 4, "copied")


def _shared_brackets(page_map: PageMap) -> Iterator[str]:
    """Join each row to the next over the pages that both hold; those come first in both."""
    pairs = zip(page_map.tables, page_map.tables[1:], strict=False)
    for row, (upper, lower) in enumerate(pairs):
        same = zip(upper.page_ids, lower.page_ids, strict=False)
        count = sum(a == b for a, b in same)
        if count == 0:
            continue
        top, bottom = _row_top(row) + CELL_HEIGHT + 4, _row_top(row + 1) - 4
        left, right = _column_left(0) + 1, _column_left(count) - 1
        middle = (top + bottom) / 2
        label = f"the same {count} pages, stored once"
        half = 3.4 * len(label)
        yield (
            f'<path class="bracket" d="M{left:g} {top:g} V{bottom:g} M{right:g} {top:g} V{bottom:g}'
            f" M{left:g} {middle:g} H{(left + right) / 2 - half:g}"
            f' M{(left + right) / 2 + half:g} {middle:g} H{right:g}"/>'
        )
        yield text((left + right) / 2, middle + 4, label, "note mid")


def _copies_between_rows(page_map: PageMap) -> Iterator[str]:
    for copy in page_map.copies_shown():
        x1, row1 = _place(page_map, copy.source)
        x2, row2 = _place(page_map, copy.destination)
        y1, y2 = _row_top(row1) + CELL_HEIGHT, _row_top(row2)
        yield arrow(x1, y1 + 1, x2, y2 - 2)
        label = f"{copy.num_tokens} tokens copied"
        yield text(max(x1, x2) + 12, (y1 + y2) / 2 + 4, label, "note red")


def _place(page_map: PageMap, page_id: PageId) -> tuple[float, int]:
    """Return the middle of the page's first cell, and its row."""
    table = page_map.holders(page_id)[0]
    column = table.page_ids.index(page_id)
    return _column_left(column) + CELL_WIDTH / 2, page_map.tables.index(table)


# ── The pool ─────────────────────────────────────────────────────────────────────────────────


class _Pool:
    """The lower half: the pages in use as tiles.

    Owns: where each tile stands.
    """

    def __init__(self, page_map: PageMap, width: int):
        self._map = page_map
        self._pages = page_map.pages()
        self._columns = width // MIN_TILE_STEP
        self._step = width / self._columns
        self._tile_width = self._step - 4
        self._top = _row_top(len(page_map.tables)) + 28
        rows = -(-len(self._pages) // self._columns)
        self.bottom = int(self._top + rows * (TILE_HEIGHT + TILE_GAP) - TILE_GAP)

    def draw(self) -> Iterator[str]:
        yield text(MARGIN, self._top - 14, self._heading(), "head")
        for page_id in self._pages:
            yield from self._tile(page_id)
        for copy in self._map.copies_shown():
            (x1, y1), (x2, y2) = self._corner(copy.source), self._corner(copy.destination)
            middle = self._tile_width / 2
            yield arrow(x1 + middle, y1 + TILE_HEIGHT + 1, x2 + middle, y2 - 2)

    def _heading(self) -> str:
        filled = sum(self._map.fill(page_id) for page_id in self._pages) / len(self._pages)
        num_entries = sum(len(table.page_ids) for table in self._map.tables)
        return (
            f"Pool: {len(self._pages)} pages behind {num_entries} entries, "
            f"{100 * filled:.1f}% of their slots filled; letters name the holders"
        )

    def _corner(self, page_id: PageId) -> tuple[float, float]:
        row, column = divmod(self._pages.index(page_id), self._columns)
        return MARGIN + column * self._step, self._top + row * (TILE_HEIGHT + TILE_GAP)

    def _tile(self, page_id: PageId) -> Iterator[str]:
        (left, top), width = self._corner(page_id), self._tile_width
        filled = width * self._map.fill(page_id)
        letters = " ".join(table.name for table in self._map.holders(page_id))
        yield rect(left, top, width, TILE_HEIGHT, "empty")
        yield rect(left, top, filled, TILE_HEIGHT, self._map.colour(page_id))
        yield from _copied_bar(self._map, page_id, left, top + TILE_HEIGHT, width)
        yield rect(left, top, width, TILE_HEIGHT, "frame")
        yield text(left + width / 2, top + 14, str(page_id), "number")
        yield text(left + width / 2, top + 29, letters, "holders")
