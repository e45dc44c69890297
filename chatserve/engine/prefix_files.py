"""Keeps pinned prefixes on disk, so that a restart need not compute them again.

Owns one folder and the files in it, one per tenant and name. Knows neither pins nor tensors: when
to save, restore or remove is the scheduler's business, KV is bytes here, and `PrefixFormat` says
what a file must contain to be believed.

Invariants:
  1. Only this user can read a file, from its first byte on and whatever the umask.
  2. A file appears by rename, whole or not at all. What a killed run left half-written has another
     suffix, is never read, and goes when the folder is next opened.
  3. All files together stay within `max_bytes`; one that is about to be replaced does not count.
  4. The disk never stops the service: what fails is a warning, and costs a computation.

A file that is damaged or was saved for something else stays where it is: the next `save` of that
name replaces it, removing the prompt removes it, and until then it can be looked at. Workers may
share a folder; one that opens it while another saves makes that save fail, and nothing else.
"""

import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from chatserve.engine.page_contents import PageContents, PoolLayout
from chatserve.engine.prefix_format import PrefixFormat, PrefixKey, UnusableFile

_SUFFIX = ".kv"
_PARTIAL_SUFFIX = ".partial"
_FOLDER_MODE = 0o700
_FILE_MODE = 0o600

logger = logging.getLogger(__name__)


class PrefixFiles:
    """Saves prefixes, and finds them again if they still fit to the bit.

    Owns: the files in its folder. Used from: the engine thread, between two steps.
    """

    def __init__(self, folder: Path, layout: PoolLayout, *, max_bytes: int):
        self._folder = folder
        self._layout = layout
        self._max_bytes = max_bytes
        self._can_save = self._open_folder()

    def save(self, key: PrefixKey, contents: PageContents) -> bool:
        """Write all pages of a prefix, in place of whatever had its name.

        Slots behind the last token may hold anything: they are not written. False if there is no
        room or the disk fails; then nothing is kept under that name.
        """
        if not self._can_save:
            return False
        problem = self._try_save(PrefixFormat(self._layout, key), contents)
        if problem is None:
            return True
        logger.warning("prefix %r of tenant %r is not saved: %s", key.name, key.tenant, problem)
        self.remove(key.tenant, key.name)
        return False

    def load(self, key: PrefixKey) -> PageContents | None:
        """Return the saved KV of exactly this prefix, or None. Changes nothing on disk.

        Slots behind the last token are zeros.
        """
        path = self._path(key.tenant, key.name)
        try:
            return self._read(path, PrefixFormat(self._layout, key))
        except FileNotFoundError:
            return None
        except (OSError, UnusableFile) as error:
            owner = (key.name, key.tenant)
            logger.warning("prefix %r of tenant %r: ignoring %s: %s", *owner, path, error)
            return None

    def remove(self, tenant: str, name: str) -> None:
        """Remove the file of one prefix, if there is one."""
        own = self._path(tenant, name).name
        self._remove_files(lambda file_name: file_name == own)

    def remove_tenant(self, tenant: str) -> None:
        """Remove every file of a tenant."""
        own = f"{_digest(tenant)}-"
        self._remove_files(lambda file_name: file_name.startswith(own))

    def prune(self, keep: Collection[tuple[str, str]]) -> None:
        """Remove every file but those of the given (tenant, name) pairs."""
        kept = {self._path(tenant, name).name for tenant, name in keep}
        self._remove_files(lambda file_name: file_name.endswith(_SUFFIX) and file_name not in kept)

    def _open_folder(self) -> bool:
        """Make the folder private and clean; False, and the only warning, if it cannot be used."""
        try:
            self._folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            state = self._folder.lstat()
            if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
                raise PermissionError(f"{self._folder} must be a folder that belongs to this user")
            self._folder.chmod(_FOLDER_MODE)
            if not os.access(self._folder, os.W_OK):
                raise PermissionError(f"{self._folder} is read-only")
        except OSError as error:
            logger.warning("pinned prefixes will not be saved: %s", error)
            return False
        self._remove_files(lambda file_name: file_name.endswith(_PARTIAL_SUFFIX))
        return True

    def _path(self, tenant: str, name: str) -> Path:
        """Return where a prefix is kept. Names are hashed, so that they may contain anything."""
        return self._folder / f"{_digest(tenant)}-{_digest(name)}{_SUFFIX}"

    def _try_save(self, prefix: PrefixFormat, contents: PageContents) -> str | None:
        """Return what kept it from being saved, None if nothing did."""
        path = self._path(prefix.key.tenant, prefix.key.name)
        try:
            total = self._bytes_beside(path) + prefix.num_bytes
            if total > self._max_bytes:
                return f"all saved prefixes would take {total:,} bytes, limit {self._max_bytes:,}"
            self._write(path, prefix, contents)
        except OSError as error:
            return str(error)
        return None

    def _bytes_beside(self, path: Path) -> int:
        with os.scandir(self._folder) as entries:
            others = [entry for entry in entries if entry.name != path.name]
        return sum(entry.stat(follow_symlinks=False).st_size for entry in others)

    def _write(self, path: Path, prefix: PrefixFormat, contents: PageContents) -> None:
        """Write a file under another name, then put it in its place."""
        descriptor, partial = tempfile.mkstemp(suffix=_PARTIAL_SUFFIX, dir=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                # It was made with this mode or, after the umask, with less.
                os.fchmod(descriptor, _FILE_MODE)
                prefix.write(file, contents)
                file.flush()
                os.fsync(descriptor)
            os.replace(partial, path)
        finally:
            Path(partial).unlink(missing_ok=True)
        self._sync_folder()

    def _read(self, path: Path, prefix: PrefixFormat) -> PageContents:
        """Read a file, if nobody but this user can have written it."""
        with open(path, "rb", opener=_open_without_following) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid():
                raise UnusableFile("it is not a file of this user")
            if stat.S_IMODE(state.st_mode) != _FILE_MODE:
                raise UnusableFile(f"its mode is {stat.S_IMODE(state.st_mode):o}, expected 600")
            return prefix.read(file, state.st_size)

    def _remove_files(self, is_doomed: Callable[[str], bool]) -> None:
        """Remove files by their names; one that resists does not save the others."""
        with _failure_reported(f"remove saved prefixes from {self._folder}"):
            for file_name in filter(is_doomed, os.listdir(self._folder)):
                with _failure_reported(f"remove {self._folder / file_name}"):
                    os.unlink(self._folder / file_name)
            self._sync_folder()

    def _sync_folder(self) -> None:
        """Make renames and removals outlive a power failure."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _digest(text: str) -> str:
    """Return a short hash for file names; who the file belongs to is checked by its header."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _open_without_following(path: str, flags: int) -> int:
    """Open a file, but through no link, and without waiting should it be a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


@contextmanager
def _failure_reported(action: str) -> Iterator[None]:
    """Make a failing disk a warning. That something is gone already is no failure."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.warning("cannot %s: %s", action, error)
