"""Rows of usage, added up by what somebody wants to see.

Owns the groups and the order of their sums. Pure; the rows come from `usage.py`.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from chatserve.store.usage import UsageRow, Used


class UsageGroup(StrEnum):
    """What rows are added up by."""

    DAY = "day"
    USER = "user"
    MODEL = "model"
    TENANT = "tenant"

    def name_in(self, row: UsageRow) -> str:
        """Return the name of the sum that a row belongs to."""
        match self:
            case UsageGroup.DAY:
                return row.day.isoformat()
            case UsageGroup.USER:
                return row.user
            case UsageGroup.MODEL:
                return row.model
            case UsageGroup.TENANT:
                return row.tenant


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The sums by name, in order, and the sum of all."""

    sums: tuple[tuple[str, Used], ...]
    total: Used


def report_of(rows: Iterable[UsageRow], group: UsageGroup) -> UsageReport:
    """Add rows up."""
    sums: dict[str, Used] = defaultdict(Used)
    for row in rows:
        sums[group.name_in(row)] += row.used
    return UsageReport(tuple(sorted(sums.items())), sum(sums.values(), Used()))
