"""Saved prefixes on a disk that fails, fills up or is not ours: a warning, never a wrong prefix."""

import errno
import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engine.prefix_helpers import KEY, make_contents, only_file, open_files

from chatserve.engine.prefix_files import PrefixFiles

KILLED_WHILE_SAVING = """
import os, sys
from pathlib import Path
from engine.prefix_helpers import KEY, make_contents, open_files

os.replace = lambda source, target: os._exit(9)
open_files(Path(sys.argv[1])).save(KEY, make_contents())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "prefixes"


@pytest.fixture
def files(folder: Path) -> PrefixFiles:
    return open_files(folder)


@contextmanager
def no_file_longer_than(num_bytes: int) -> Iterator[None]:
    """Let writes fail in the middle of a file, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_run_killed_while_saving_leaves_nothing_that_loads_or_stays(folder: Path) -> None:
    tests = Path(__file__).parents[1]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_SAVING, str(folder)],
        env={**os.environ, "PYTHONPATH": str(tests)},
        check=False,
    )
    leftover = only_file(folder)

    files = open_files(folder)

    assert killed.returncode == 9
    assert leftover.suffix == ".partial"
    assert list(folder.iterdir()) == []
    assert files.load(KEY) is None


def test_data_is_on_the_disk_before_its_name_and_the_name_before_save_returns(
    files: PrefixFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    fsync, replace = os.fsync, os.replace

    def spy_on_fsync(descriptor: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def spy_on_replace(source: str, target: Path) -> None:
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", spy_on_fsync)
    monkeypatch.setattr(os, "replace", spy_on_replace)

    files.save(KEY, make_contents())

    assert calls == ["file", "rename", "folder"]


@pytest.mark.parametrize(
    ("module", "call"), [(tempfile, "mkstemp"), (os, "fchmod"), (os, "fsync"), (os, "replace")]
)
def test_a_disk_that_refuses_costs_one_save(
    files: PrefixFiles,
    folder: Path,
    module: Any,
    call: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, call, refuse)
        assert not files.save(KEY, make_contents())
    left = list(folder.iterdir())

    assert "'support' of tenant 'acme' is not saved: [Errno 28] No space left" in caplog.text
    assert left == []
    assert files.save(KEY, make_contents())


@pytest.mark.parametrize("num_bytes", [0, 100, 300, 400])
def test_a_disk_that_fills_up_while_saving_leaves_nothing(
    files: PrefixFiles, folder: Path, num_bytes: int
) -> None:
    files.save(KEY, make_contents())
    assert only_file(folder).stat().st_size > 400

    with no_file_longer_than(num_bytes):
        saved = files.save(KEY, make_contents())

    assert not saved
    assert list(folder.iterdir()) == []


def make_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    path.touch()


def make_file_above(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.touch()


def make_link(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    path.symlink_to("/tmp")


def make_read_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *args: False)  # root may write whatever the mode


@pytest.mark.parametrize("spoil", [make_file, make_file_above, make_link, make_read_only])
def test_a_folder_that_cannot_be_used_is_one_warning(
    folder: Path, spoil: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(folder, monkeypatch)

    files = open_files(folder)

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "pinned prefixes will not be saved" in caplog.text
    caplog.clear()
    assert not files.save(KEY, make_contents())
    assert not files.save(KEY, make_contents())
    assert caplog.records == []


def test_a_folder_that_is_gone_costs_a_warning(
    files: PrefixFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.rmdir()

    assert files.load(KEY) is None
    files.remove_tenant("acme")
    files.prune([])
    assert caplog.records == []
    assert not files.save(KEY, make_contents())

    assert len(caplog.records) == 1
