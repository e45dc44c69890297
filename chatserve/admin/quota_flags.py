"""The flags for the quotas of a tenant or a key.

Owns their names and how one is taken away again. What a quota does is told in `docs/tenants.md`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from chatserve.admin.table import NOTHING
from chatserve.settings import Kind, setting

NO_LIMIT = "none"
"""How a quota is taken away; a flag that is not given leaves it as it is."""

_MAX_LIMIT = 10**12

KEY_QUOTAS = frozenset(
    {"requests_per_minute", "tokens_per_minute", "parallel_responses", "connections"}
)
TENANT_QUOTAS = KEY_QUOTAS | {"pinned_pages"}


def quota_flag(name: str, meaning: str) -> Any:
    """Return the dataclass field of one quota."""
    return setting(
        "--" + name.replace("_", "-"),
        f"{meaning}; `{NO_LIMIT}` for no limit",
        Kind(_parse_limit, "N", _check_limit),
        default=None,
        is_variable=False,
    )


def with_flags(config: Any, names: Iterable[str], before: Mapping[str, int]) -> dict[str, int]:
    """Return the quotas that hold when those that were given are put over those from before."""
    quotas = dict(before)
    for name in sorted(names):
        limit: int | str | None = getattr(config, name)
        if limit == NO_LIMIT:
            quotas.pop(name, None)
        elif limit is not None:
            quotas[name] = int(limit)
    return quotas


def quotas_in_words(quotas: Mapping[str, int]) -> str:
    """Return the quotas that are set, in one line."""
    named = (f"{name.replace('_', ' ')} {limit:,}" for name, limit in quotas.items())
    return ", ".join(named) or NOTHING


def _parse_limit(value: str) -> int | str:
    if value.lower() == NO_LIMIT:
        return NO_LIMIT
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"expected a whole number or {NO_LIMIT}, got {value!r}") from None


def _check_limit(value: int | str) -> str | None:
    if isinstance(value, int) and not 0 <= value <= _MAX_LIMIT:
        return f"must be from 0 to {_MAX_LIMIT}, got {value}"
    return None
