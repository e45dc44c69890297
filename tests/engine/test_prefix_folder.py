"""The folder of saved prefixes: who may read it, and what is removed."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from engine.prefix_helpers import KEY, make_contents, only_file, open_files, without_foreign

from chatserve.engine.prefix_files import PrefixFiles
from chatserve.engine.prefix_format import PrefixKey

OWNERS = [("", "preamble"), ("acme", "support"), ("acme", "sales"), ("rival", "support")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "prefixes"


@pytest.fixture
def files(folder: Path) -> PrefixFiles:
    return open_files(folder)


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=["umask-0", "umask-022", "umask-777"])
def _umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Set the umask, once pytest's own folder is there."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode_of(path: Path | int) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def save_all(files: PrefixFiles) -> list[PrefixKey]:
    keys = [PrefixKey(tenant, name, (1, 2, 3)) for tenant, name in OWNERS]
    assert all([files.save(key, make_contents(key)) for key in keys])
    return keys


def owners_left(files: PrefixFiles, keys: list[PrefixKey]) -> list[tuple[str, str]]:
    return [(key.tenant, key.name) for key in keys if files.load(key) is not None]


@pytest.mark.usefixtures("_umask")
def test_nobody_else_can_read_a_file_from_its_first_byte_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes_when_made = []
    fchmod = os.fchmod

    def spy(descriptor: int, mode: int) -> None:
        modes_when_made.append(mode_of(descriptor))
        fchmod(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", spy)
    folder = tmp_path / "prefixes"

    assert open_files(folder).save(KEY, make_contents())

    assert mode_of(folder) == 0o700
    assert mode_of(only_file(folder)) == 0o600
    assert [mode & ~0o600 for mode in modes_when_made] == [0]
    assert open_files(folder).load(KEY) is not None


def test_a_folder_that_others_could_enter_is_closed(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o755)

    open_files(folder)

    assert mode_of(folder) == 0o700


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o700])
def test_a_file_of_another_mode_is_ignored(
    files: PrefixFiles, folder: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())

    only_file(folder).chmod(mode)

    assert files.load(KEY) is None
    assert f"its mode is {mode:o}, expected 600" in caplog.text


def test_a_file_of_another_user_is_ignored(
    files: PrefixFiles, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    another = os.geteuid() + 1

    monkeypatch.setattr(os, "geteuid", lambda: another)

    assert files.load(KEY) is None
    assert "not a file of this user" in caplog.text


def test_links_are_neither_followed_nor_written_through(
    files: PrefixFiles, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    path, elsewhere = only_file(folder), tmp_path / "elsewhere"
    path.replace(elsewhere)
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()

    assert files.load(KEY) is None
    renewed = replace(KEY, token_ids=(1,))
    assert files.save(renewed, make_contents(renewed))

    assert len(caplog.records) == 1
    assert not path.is_symlink()
    assert elsewhere.read_bytes() == before


def test_removing_a_link_leaves_what_it_points_to(
    files: PrefixFiles, folder: Path, tmp_path: Path
) -> None:
    files.save(KEY, make_contents())
    path, elsewhere = only_file(folder), tmp_path / "elsewhere"
    path.replace(elsewhere)
    path.symlink_to(elsewhere)

    files.remove(KEY.tenant, KEY.name)

    assert list(folder.iterdir()) == []
    assert elsewhere.exists()


def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    files: PrefixFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    path = only_file(folder)
    path.unlink()
    os.mkfifo(path, 0o600)

    assert files.load(KEY) is None
    assert "not a file of this user" in caplog.text


def test_a_folder_in_place_of_a_file_is_a_warning(
    files: PrefixFiles, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.save(KEY, make_contents())
    path = only_file(folder)
    path.unlink()
    path.mkdir()
    descriptors = len(os.listdir("/dev/fd"))

    assert files.load(KEY) is None
    assert not files.save(KEY, make_contents())
    files.remove_tenant(KEY.tenant)

    assert "Is a directory" in caplog.text
    assert only_file(folder) == path
    assert len(os.listdir("/dev/fd")) == descriptors


def test_what_would_pass_the_bound_is_not_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_files(tmp_path).save(KEY, make_contents())
    num_bytes = only_file(tmp_path).stat().st_size
    other = replace(KEY, name="another")  # a name as long as the first

    exact = open_files(tmp_path, max_bytes=2 * num_bytes)
    assert exact.save(KEY, make_contents())
    assert exact.save(other, make_contents())
    assert caplog.records == []
    short = open_files(tmp_path, max_bytes=2 * num_bytes - 1)

    assert not short.save(other, make_contents())
    assert f"would take {2 * num_bytes:,} bytes, limit {2 * num_bytes - 1:,}" in caplog.text
    assert short.load(KEY) is not None


def test_a_refused_save_leaves_no_older_prefix_under_its_name(tmp_path: Path) -> None:
    open_files(tmp_path).save(KEY, make_contents())

    assert not open_files(tmp_path, max_bytes=10).save(KEY, make_contents())

    assert list(tmp_path.iterdir()) == []


def test_a_removed_prompt_takes_its_file_with_it(files: PrefixFiles) -> None:
    keys = save_all(files)

    files.remove("acme", "support")
    files.remove("acme", "support")

    assert owners_left(files, keys) == [("", "preamble"), ("acme", "sales"), ("rival", "support")]


def test_a_revoked_tenant_takes_its_files_with_it(files: PrefixFiles) -> None:
    keys = save_all(files)

    files.remove_tenant("acme")
    files.remove_tenant("acme")

    assert owners_left(files, keys) == [("", "preamble"), ("rival", "support")]


def test_a_file_that_resists_does_not_save_the_others(
    files: PrefixFiles, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = save_all(files)
    unlink, resisting = os.unlink, sorted(folder.iterdir())[0]

    def resist(path: Path) -> None:
        if path == resisting:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        unlink(path)

    monkeypatch.setattr(os, "unlink", resist)

    files.prune([])

    assert only_file(folder) == resisting
    assert len(owners_left(files, keys)) == 1


def test_pruning_keeps_what_is_registered_and_what_is_not_ours(
    files: PrefixFiles, folder: Path
) -> None:
    keys = save_all(files)
    (folder / "README").touch()

    files.prune([("acme", "sales"), ("", "preamble"), ("never", "saved")])

    assert owners_left(files, keys) == [("", "preamble"), ("acme", "sales")]
    assert (folder / "README").exists()


def test_another_tenants_equal_prompt_has_a_file_of_its_own(files: PrefixFiles) -> None:
    ours, theirs = PrefixKey("acme", "p", (1, 2)), PrefixKey("rival", "p", (1, 2))
    contents = make_contents(ours)
    contents.k[0] = 42

    files.save(theirs, make_contents(theirs))
    files.save(ours, contents)
    files.remove_tenant("acme")

    assert files.load(ours) is None
    assert files.load(theirs) == without_foreign(make_contents(theirs))
