"""The picture of the page map, drawn from an engine on integers."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from unit.cache_helpers import hash_model
from unit.tokenizer_helpers import byte_level_definition, make_tokenizer

from benchmarks.page_map import CELL_HEIGHT, CELL_WIDTH, PageMap, draw
from benchmarks.stepped_engine import SteppedEngine, Work
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.engine.fake import FakeRunner
from chatserve.engine.scheduler import Scheduler, SchedulerConfig

PAGE_SIZE, NUM_PAGES = 4, 32
SYSTEM = list(range(100, 110))
A = [*SYSTEM, 50, 51, 52, 53]
B = [*SYSTEM, 50, 60]
C = [70, 71, 72, 73, 74, 75]

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def page_map() -> PageMap:
    """Two requests that part inside their third page, and one that shares nothing."""
    config = SchedulerConfig(8, 64, NUM_PAGES * PAGE_SIZE, frozenset())
    engine = SteppedEngine(
        Scheduler(config, PrefixCache(NUM_PAGES, PAGE_SIZE)),
        FakeRunner(NUM_PAGES, PAGE_SIZE, hash_model()),
        make_tokenizer(byte_level_definition()),
    )
    engine.add(Work("A", A, 20))
    engine.step()
    engine.add(Work("B", B, 20), Work("C", C, 20))
    for _ in range(4):
        engine.step()
    tables, copies = engine.page_tables(), engine.watch.copies
    return PageMap(PAGE_SIZE, tables, copies, "A & B, and C", ["They < share."])


@pytest.fixture(scope="module")
def picture(page_map: PageMap) -> ET.Element:
    return ET.fromstring(draw(page_map))


def of_class(picture: ET.Element, tag: str, style: str) -> list[ET.Element]:
    found = picture.iter(f"{SVG}{tag}")
    return [element for element in found if style in element.get("class", "").split()]


def texts(picture: ET.Element, style: str) -> list[str]:
    return [element.text or "" for element in of_class(picture, "text", style)]


def test_the_example_has_something_to_show(page_map: PageMap) -> None:
    a, b, c = page_map.tables

    assert a.page_ids[:2] == b.page_ids[:2]
    assert not set(a.page_ids[2:]) & set(b.page_ids)
    assert not set(a.page_ids + b.page_ids) & set(c.page_ids)
    assert [copy.num_tokens for copy in page_map.copies] == [3]


def test_every_entry_of_a_page_table_is_a_cell_and_every_page_one_tile(
    page_map: PageMap, picture: ET.Element
) -> None:
    numbers = texts(picture, "number")

    entries = [str(page_id) for table in page_map.tables for page_id in table.page_ids]
    assert numbers == entries + [str(page_id) for page_id in page_map.pages()]


def test_a_tile_names_all_holders_of_its_page(page_map: PageMap, picture: ET.Element) -> None:
    letters = texts(picture, "holders")

    assert len(letters) == len(page_map.pages())
    assert letters.count("A B") == 2
    assert letters.count("C") == len(page_map.tables[2].page_ids)
    assert "stored once" in texts(picture, "mid")[0]


def test_a_cell_is_coloured_as_far_as_its_page_is_filled(
    page_map: PageMap, picture: ET.Element
) -> None:
    cells = [
        float(rect.get("width", "0")) / CELL_WIDTH
        for rect in of_class(picture, "rect", "own2")
        if rect.get("height") == str(CELL_HEIGHT)
    ]

    full, rest = divmod(page_map.tables[2].num_tokens, PAGE_SIZE)
    assert rest == 1
    assert cells == [1.0] * full + [rest / PAGE_SIZE]


def test_a_copy_is_an_arrow_in_both_halves_and_marks_what_came_along(
    page_map: PageMap, picture: ET.Element
) -> None:
    arrows = [path for path in of_class(picture, "path", "copy") if "V" in path.get("d", "")]
    bars = of_class(picture, "rect", "copied")

    assert len(arrows) == 2
    assert float(bars[0].get("width", "0")) == CELL_WIDTH * 3 / PAGE_SIZE
    assert texts(picture, "red") == ["3 tokens copied"]


def test_a_copy_whose_pages_are_gone_is_not_drawn(page_map: PageMap) -> None:
    c_alone = replace(page_map, tables=page_map.tables[2:])

    picture = ET.fromstring(draw(c_alone))

    assert of_class(picture, "path", "copy") == []
    assert set(texts(picture, "holders")) == {"C"}


def test_the_picture_brings_all_it_needs_and_says_what_it_shows(picture: ET.Element) -> None:
    tags = {element.tag.removeprefix(SVG) for element in picture.iter()}

    assert tags == {"svg", "title", "desc", "style", "defs", "marker", "path", "rect", "text"}
    assert picture.findtext(f"{SVG}title") == "A & B, and C"
    assert picture.findtext(f"{SVG}desc") == "They < share."
    assert "prefers-color-scheme: dark" in (picture.findtext(f"{SVG}style") or "")
