"""Fetching a model in front of a person: what it is, under which licence, how far it has come.

Owns what is shown while `serve` or `models fetch` downloads. Knows nothing of where a model comes
from or how it is checked; that is the catalog's.
"""

from pathlib import Path
from typing import TextIO

from chatserve.model.catalog import CATALOG, fetch, resolve_model

_MB = 10**6


def fetch_if_missing(model: str, data_dir: Path, out: TextIO) -> Path:
    """Return the path of a model, having fetched it if it is an alias that is not here yet.

    Raises:
        ConfigError: There is no such model.
        ModelError: It could not be fetched.
    """
    entry = CATALOG.get(model)
    if entry is None or entry.path_in(data_dir).exists():
        return resolve_model(model, data_dir)
    out.write(f"fetching {entry.description} (licence: {entry.license})\n")
    progress = FetchProgress(out)
    try:
        return fetch(entry, data_dir, progress.draw)
    finally:
        progress.close()


class FetchProgress:
    """One line that grows in place on a terminal, one line per tenth in a file or pipe.

    Owns: what has been drawn so far.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._num_steps = 100 if out.isatty() else 10
        self._end = "\r" if out.isatty() else "\n"
        self._last_step = -1

    def draw(self, num_bytes: int, total_bytes: int) -> None:
        step = self._num_steps * num_bytes // total_bytes
        if step == self._last_step:
            return
        self._last_step = step
        percent = 100 * num_bytes // total_bytes
        self._out.write(f"  {num_bytes // _MB} of {total_bytes // _MB} MB ({percent} %){self._end}")
        self._out.flush()

    def close(self) -> None:
        """Leave a drawn line standing on its own."""
        if self._end == "\r" and self._last_step >= 0:
            self._out.write("\n")
