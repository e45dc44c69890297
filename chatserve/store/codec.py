"""How values are written into commands and into fields of the store.

Token ids are a comma-separated list, because Lua can join and store such lists without parsing
them; structures are JSON; absent things are the empty string.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from chatserve.engine.api import Outcome

Value: TypeAlias = str | int | float
Command: TypeAlias = tuple[Value, ...]


def counted(values: Sequence[Value]) -> list[Value]:
    """Return a run that a script can take out of its arguments: how many values, then they."""
    return [len(values), *values]


def flatten(fields: Mapping[str, Value]) -> list[Value]:
    """Return names and values in turn, as the server takes the fields of a hash or an entry."""
    return [word for field in fields.items() for word in field]


def pairs(flat: Sequence[str]) -> dict[str, str]:
    """Return the dictionary that was flattened to names and values in turn."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def pack_token_ids(token_ids: Iterable[int]) -> str:
    return ",".join(map(str, token_ids))


def unpack_token_ids(packed: str) -> tuple[int, ...]:
    return tuple(map(int, packed.split(","))) if packed else ()


def dump_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def dump_outcome(outcome: Outcome | None) -> str:
    return dump_json(outcome.to_dict()) if outcome else ""


def load_outcome(packed: str) -> Outcome | None:
    return Outcome.from_dict(orjson.loads(packed)) if packed else None
