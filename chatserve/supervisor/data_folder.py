"""The data folder belongs to one running service at a time.

Owns the lock file. The lock is the kernel's and hangs on an open file: it is gone when the last
process that holds the file open is gone, so a crash leaves none behind. The supervisor shares the
file with the guardian of its lifeline; after a SIGKILL the folder therefore stays locked for as
long as children of the dead supervisor may still be writing into it.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chatserve.errors import ConfigError

LOCK_NAME = "serve.lock"
_WAIT_S = 10.0
_POLL_S = 0.1


@contextmanager
def lock_folder(folder: Path) -> Iterator[int]:
    """Hold the lock of a data folder, which is made if it is missing; give its descriptor.

    Raises:
        ConfigError: Another service uses the folder, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"--data-dir: cannot write to {folder}: {error.strerror}") from error
    try:
        _lock(descriptor, folder)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    """Take the lock, waiting only where its owner is dead and the rest is on its way out."""
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner(descriptor)
            if _is_alive(owner) or time.monotonic() > deadline:
                raise ConfigError(
                    f"--data-dir: {folder} is in use by process {owner}; "
                    "stop that one or name another folder"
                ) from None
        time.sleep(_POLL_S)


def _owner(descriptor: int) -> int:
    """Return who wrote the lock file; 0 where the owner has not come to writing it yet."""
    return int(os.pread(descriptor, 32, 0).strip() or 0)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, but there
        pass
    return True
