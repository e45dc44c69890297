"""The text of a prompt, as it is read from a file or from the standard input.

Owns what of a file is text and what editors added. Reads no more of it than a prompt may have.
"""

import sys
from codecs import BOM_UTF8
from pathlib import Path

from chatserve.errors import ConfigError
from chatserve.store.named_prompt import MAX_TEXT_BYTES


def read_text(file: str) -> str:
    """Return a file's text without what editors add: a byte order mark, and the last line end."""
    raw = _read_bytes(file, len(BOM_UTF8) + MAX_TEXT_BYTES + len("\r\n") + 1)
    raw = raw.removeprefix(BOM_UTF8)
    if len(raw) > MAX_TEXT_BYTES + len("\r\n"):  # cut, perhaps within a character
        raise ConfigError(f"text: must have at most {MAX_TEXT_BYTES:,} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        source = "the standard input" if file == "-" else file
        raise ConfigError(f"--file: {source} is not UTF-8 text") from error
    return text.removesuffix("\n").removesuffix("\r")


def _read_bytes(file: str, max_bytes: int) -> bytes:
    """Return the beginning of a file, or of the standard input for a dash."""
    if file == "-":
        if sys.stdin is None:
            raise ConfigError("--file: the standard input is closed")
        return sys.stdin.buffer.read(max_bytes)
    try:
        with Path(file).open("rb") as source:
            return source.read(max_bytes)
    except FileNotFoundError as error:
        raise ConfigError(f"--file: there is no file {file}") from error
    except OSError as error:
        raise ConfigError(f"--file: {file} cannot be read: {error.strerror}") from error
