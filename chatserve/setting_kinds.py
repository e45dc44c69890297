"""The kinds of values that settings have.

Owns how each kind is written and which values it allows: `number(1, 8)` is a kind, `--page-size`
is not. Knows no setting; `config.py` puts settings together from these.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chatserve.settings import Kind

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def number(low: int, high: int, metavar: str = "N") -> Kind:
    """A whole number from `low` to `high`."""
    return Kind(_parse_int, metavar, _between(low, high))


def decimal(low: float, high: float, metavar: str) -> Kind:
    """A number from `low` to `high`, fractions allowed."""
    return Kind(_parse_float, metavar, _between(low, high))


def seconds(low: float, high: float) -> Kind:
    """A duration, fractions allowed."""
    return decimal(low, high, "SECONDS")


def size(low: int, high: int) -> Kind:
    """A number of bytes: `536870912`, `512MiB`, `1.5GiB`, `2GB`."""
    return Kind(_parse_bytes, "SIZE", _between(low, high))


def power_of_two(high: int) -> Kind:
    """A power of two from 1 to `high`."""

    def check(value: int) -> str | None:
        if 1 <= value <= high and value & (value - 1) == 0:
            return None
        return f"must be a power of two from 1 to {high}, got {value}"

    return Kind(_parse_int, "N", check)


def choice(*allowed: str, metavar: str) -> Kind:
    """One of a few words, in any case."""

    def check(value: str) -> str | None:
        return None if value in allowed else f"must be one of {', '.join(allowed)}, got {value!r}"

    return Kind(str.lower, metavar, check)


def switch(value: bool) -> Kind:
    """A flag without argument that stands for `value`; its variable says yes or no."""
    return Kind(_parse_yes_or_no, switch=value)


def text(metavar: str) -> Kind:
    """Any text but an empty one."""
    return Kind(str, metavar, lambda value: None if value.strip() else "must not be empty")


def names(metavar: str, pattern: str, wanted: str) -> Kind:
    """A list separated by commas, each entry matching `pattern`."""

    def check(value: tuple[str, ...]) -> str | None:
        wrong = [name for name in value if not re.fullmatch(pattern, name)]
        return f"must be {wanted}, got {wrong[0]!r}" if wrong else None

    return Kind(_parse_names, metavar, check)


def assignments(metavar: str) -> Kind:
    """Names with values, one for each time that the flag is given."""
    return Kind(_parse_assignment, metavar, is_repeated=True)


def folder() -> Kind:
    """A folder that can be read and written, or be made where it is missing."""
    return Kind(lambda value: Path(value).expanduser(), "DIR", _check_folder)


def model() -> Kind:
    """A model's alias, which the catalog must know, or a path, which must exist."""
    return Kind(os.path.expanduser, "MODEL", _check_model)


def store_url() -> Kind:
    """The address of a Redis server. Messages leave it out: it may hold a password."""
    return Kind(str, "URL", _check_store_url)


def _parse_int(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"expected a whole number, got {value!r}") from None


def _parse_float(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"expected a number, got {value!r}") from None


def _parse_bytes(value: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)", value.strip().upper())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"expected a size such as 512MiB or 2GB, got {value!r}")
    return int(float(match[1]) * _UNITS[match[2]])


def _parse_yes_or_no(value: str) -> bool:
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"expected yes or no, got {value!r}")


def _parse_names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _parse_assignment(value: str) -> tuple[str, str]:
    name, equals, text = value.partition("=")
    if not name or not equals:
        raise ValueError(f"expected a name, = and a value, got {value[:80]!r}")
    return name, text


def _between(low: float, high: float) -> Callable[[Any], str | None]:
    """Return a check that NaN fails too, since no comparison with it holds."""

    def check(value: float) -> str | None:
        return None if low <= value <= high else f"must be from {low} to {high}, got {value}"

    return check


def _check_folder(value: Path) -> str | None:
    existing = value.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is not a folder"
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        return f"no permission to read and write {existing}"
    return None


def _check_model(value: str) -> str | None:
    if not value.strip():
        return "must not be empty"
    is_path = "/" in value or value.startswith(".") or value.endswith(".gguf")
    if is_path and not Path(value).exists():
        return f"there is no file or folder {value}"
    return None


def _check_store_url(value: str) -> str | None:
    try:
        address = urlsplit(value)
        has_address = bool(address.path if address.scheme == "unix" else address.hostname)
        is_valid = has_address and address.port != 0
    except ValueError:
        return "is not a valid URL"
    if address.scheme not in ("redis", "rediss", "unix") or not is_valid:
        return "must look like redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix://PATH?db=0"
    return None
