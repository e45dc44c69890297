"""Small prefixes made of marked bytes, and what their tests ask of a folder. No torch."""

from pathlib import Path

from chatserve.engine.page_contents import PageContents, PoolLayout
from chatserve.engine.prefix_files import PrefixFiles
from chatserve.engine.prefix_format import PrefixKey

LAYOUT = PoolLayout(
    weights="w1",
    dtype="float32",
    element_bytes=4,
    num_layers=2,
    page_size=4,
    num_kv_heads=1,
    head_dim=2,
)
KEY = PrefixKey("acme", "support", (7, 8, 9, 10, 11, 12))
"""Six tokens: a full page, and one that is half full."""

FOREIGN = 0xEE
"""What stands in slots behind the last token: as if another tenant had used the page before."""

NO_LIMIT = 1 << 40


def make_contents(key: PrefixKey = KEY, layout: PoolLayout = LAYOUT) -> PageContents:
    """Return pages whose bytes count up from slot to slot, foreign bytes behind the last token."""
    layer_bytes = layout.layer_bytes(len(key.token_ids))
    used = len(key.token_ids) * layout.token_bytes
    contents = PageContents.zeros(layout.num_layers * layer_bytes)
    for offset, raw in enumerate((contents.k, contents.v)):
        for index in range(raw.nbytes):
            is_used = index % layer_bytes < used
            raw[index] = (index + 100 * offset) % 200 if is_used else FOREIGN
    return contents


def without_foreign(contents: PageContents) -> PageContents:
    """Return what must come back: zeros for the foreign bytes."""
    cleaned = [bytes(raw).replace(bytes([FOREIGN]), b"\0") for raw in (contents.k, contents.v)]
    return PageContents(*(memoryview(bytearray(raw)) for raw in cleaned))


def open_files(
    folder: Path, layout: PoolLayout = LAYOUT, *, max_bytes: int = NO_LIMIT
) -> PrefixFiles:
    return PrefixFiles(folder, layout, max_bytes=max_bytes)


def only_file(folder: Path) -> Path:
    """Return the one file that a folder contains."""
    (path,) = folder.iterdir()
    return path
