"""Saved prefixes: back to the bit, or not at all."""

import logging
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from engine.prefix_helpers import (
    FOREIGN,
    KEY,
    LAYOUT,
    make_contents,
    only_file,
    open_files,
    without_foreign,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from chatserve.engine.prefix_files import PrefixFiles
from chatserve.engine.prefix_format import PrefixFormat, PrefixKey, UnusableFile

OTHER_LAYOUTS = {
    "weights": "w2",
    "dtype": "int32",
    "element_bytes": 2,
    "num_layers": 3,
    "page_size": 2,
    "num_kv_heads": 2,
    "head_dim": 4,
}
HOSTILE_NAMES = ["", "../../etc/passwd", "a/b", "a\0b", "line\nfeed", "\ud800", "name " * 5000]
OTHER_TOKENS = [
    (7, 8, 9, 10, 11, 13),
    (7, 8, 9, 10, 11),
    (7, 8, 9, 10, 11, 12, 13),
    (78, 9, 10, 11, 12, 0),
    (),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "prefixes"


@pytest.fixture
def files(folder: Path) -> PrefixFiles:
    return open_files(folder)


def assert_ignored(files: PrefixFiles, key: PrefixKey, caplog: pytest.LogCaptureFixture) -> str:
    """Assert that nothing is loaded, with one warning; return it."""
    caplog.clear()
    assert files.load(key) is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    return record.getMessage()


@pytest.mark.parametrize("num_tokens", [1, 3, 4, 5, 8, 9])
def test_a_prefix_comes_back_after_a_restart(folder: Path, num_tokens: int) -> None:
    key = replace(KEY, token_ids=tuple(range(num_tokens)))
    contents = make_contents(key)

    assert open_files(folder).save(key, contents)

    assert open_files(folder).load(key) == without_foreign(contents)


def test_slots_behind_the_last_token_never_reach_the_disk(files: PrefixFiles, folder: Path) -> None:
    contents = make_contents()

    files.save(KEY, contents)

    all_but_digest = only_file(folder).read_bytes()[:-32]
    assert bytes([FOREIGN]) in bytes(contents.k)
    assert bytes([FOREIGN]) not in all_but_digest
    assert contents == make_contents()


def test_what_was_never_saved_is_no_warning(
    files: PrefixFiles, caplog: pytest.LogCaptureFixture
) -> None:
    assert files.load(KEY) is None

    assert caplog.records == []


def test_a_second_save_replaces_the_first(files: PrefixFiles, folder: Path) -> None:
    renewed = replace(KEY, token_ids=(1, 2, 3))
    files.save(KEY, make_contents())

    files.save(renewed, make_contents(renewed))

    assert only_file(folder)
    assert files.load(renewed) == without_foreign(make_contents(renewed))


@pytest.mark.parametrize(("field", "value"), OTHER_LAYOUTS.items())
def test_a_file_of_another_layout_is_ignored_and_the_field_named(
    folder: Path, field: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    open_files(folder).save(KEY, make_contents())

    other = open_files(folder, replace(LAYOUT, **{field: value}))

    assert f"it differs in {field}" in assert_ignored(other, KEY, caplog)


@pytest.mark.parametrize("token_ids", OTHER_TOKENS)
def test_tokens_are_compared_exactly_and_never_logged(
    files: PrefixFiles, token_ids: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())

    warning = assert_ignored(files, replace(KEY, token_ids=token_ids), caplog)

    assert warning.endswith("it differs in token_ids")


def test_another_version_of_the_format_is_ignored(
    files: PrefixFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    path = only_file(folder)
    path.write_bytes(path.read_bytes().replace(b"chatserve-prefix-1", b"chatserve-prefix-0"))

    assert "it differs in format" in assert_ignored(files, KEY, caplog)


@pytest.mark.parametrize("change", [{"tenant": "rival"}, {"tenant": ""}, {"name": "sales"}])
def test_equal_tokens_under_another_tenant_or_name_are_not_found(
    files: PrefixFiles, change: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())

    assert files.load(replace(KEY, **change)) is None  # type: ignore[arg-type]

    assert caplog.records == []


@pytest.mark.parametrize("field", ["tenant", "name"])
def test_a_file_put_in_the_place_of_anothers_is_ignored(
    files: PrefixFiles, folder: Path, field: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = replace(KEY, **{field: "other"})  # type: ignore[arg-type]
    files.save(other, make_contents())
    planted = only_file(folder)
    files.save(KEY, make_contents())
    own = next(path for path in folder.iterdir() if path != planted)

    planted.replace(own)

    assert f"it differs in {field}" in assert_ignored(files, KEY, caplog)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_may_contain_anything(folder: Path, name: str) -> None:
    files = open_files(folder)
    as_name, as_tenant = PrefixKey("acme", name, (1,)), PrefixKey(name, "support", (1,))

    for key in (as_name, as_tenant):
        assert files.save(key, make_contents(key))
        assert files.load(key) == without_foreign(make_contents(key))

    assert len(list(folder.iterdir())) == 2
    assert list(folder.parent.iterdir()) == [folder]


def test_tenant_and_name_do_not_run_together(files: PrefixFiles) -> None:
    files.save(PrefixKey("ab", "c", (1,)), make_contents(PrefixKey("ab", "c", (1,))))

    assert files.load(PrefixKey("a", "bc", (1,))) is None


def test_a_file_cut_short_anywhere_is_ignored(
    files: PrefixFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    path = only_file(folder)
    whole = path.read_bytes()

    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert_ignored(files, KEY, caplog)
    path.write_bytes(whole)

    assert files.load(KEY) is not None


def test_a_flipped_bit_anywhere_is_noticed(
    files: PrefixFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    path = only_file(folder)
    whole = path.read_bytes()

    for offset in range(len(whole)):
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << offset % 8
        path.write_bytes(damaged)
        assert_ignored(files, KEY, caplog)


@given(noise=st.binary(max_size=600), start=st.integers(0, 600), end=st.integers(0, 600))
@settings(max_examples=500)
def test_no_content_makes_a_load_fail_or_lie(noise: bytes, start: int, end: int) -> None:
    prefix, written = PrefixFormat(LAYOUT, KEY), BytesIO()
    prefix.write(written, make_contents())
    whole = written.getvalue()
    damaged = whole[:start] + noise + whole[end:]
    loaded = None

    with suppress(UnusableFile):
        loaded = prefix.read(BytesIO(damaged), len(damaged))

    assert loaded == (without_foreign(make_contents()) if damaged == whole else None)


def test_a_huge_file_is_not_read(
    files: PrefixFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    with only_file(folder).open("r+b") as file:
        file.truncate(1 << 33)
    tracemalloc.start()

    warning = assert_ignored(files, KEY, caplog)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "it has 8,589,934,592 bytes, expected 4" in warning
    assert peak < 1 << 20


def test_loading_takes_the_memory_of_the_pages_once(folder: Path) -> None:
    layout = replace(LAYOUT, head_dim=512)
    key = replace(KEY, token_ids=tuple(range(100)))
    files = open_files(folder, layout)
    files.save(key, make_contents(key, layout))
    tracemalloc.start()

    contents = files.load(key)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert contents is not None
    assert contents.k.nbytes + contents.v.nbytes == 819_200
    assert peak < 1.1 * 819_200


def test_damaged_files_stay_until_the_next_save(
    files: PrefixFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    path = only_file(folder)
    path.write_bytes(b"damaged")

    assert_ignored(files, KEY, caplog)
    assert path.read_bytes() == b"damaged"
    files.save(KEY, make_contents())

    assert files.load(KEY) == without_foreign(make_contents())


def test_contents_of_the_wrong_size_are_a_mistake_of_the_caller(
    files: PrefixFiles, folder: Path
) -> None:
    too_small = make_contents(replace(KEY, token_ids=(1, 2)))

    with pytest.raises(AssertionError, match="6 tokens have 128 bytes of keys"):
        files.save(KEY, too_small)

    assert list(folder.iterdir()) == []
