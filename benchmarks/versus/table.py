"""Turns samples into ratios, and ratios into the table.

Owns the table's looks and its place in the README, between two marker comments. A ratio is that of
two medians; of several peers the best counts, and while one of them is missing no target is met.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.versus.rounds import Measurement
from benchmarks.versus.rows import Row, Side

BEGIN = "<!-- peers: written by make bench -->"
END = "<!-- end of peers -->"
BOUND = "the machine's bound"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row with its figures. `note` says what is missing; without figures there is no ratio."""

    row: Row
    ours: float | None
    peer_name: str
    peer: float | None
    note: str

    @property
    def ratio(self) -> float | None:
        return self.ours / self.peer if self.ours and self.peer else None

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None where that cannot be said."""
        if self.ratio is None or self.note:
            return None
        return self.ratio <= self.row.target if self.row.is_time else self.ratio >= self.row.target


def compare(row: Row, measurement: Measurement) -> Comparison:
    medians = [(measurement.median_of(peer), peer) for peer in row.peers]
    found = [(value, peer) for value, peer in medians if value is not None]
    names = [side.contender for side in row.sides if side.contender in measurement.problems]
    note = "; ".join(f"{name}: {measurement.problems[name]}" for name in dict.fromkeys(names))
    ours = measurement.median_of(row.ours)
    if not found:
        return Comparison(row, ours, _peer_name(row, row.peers[0]), None, note)
    best = min(found) if row.is_time else max(found)
    return Comparison(row, ours, _peer_name(row, best[1]), best[0], note)


def markdown(comparisons: Iterable[Comparison]) -> str:
    """Return the table, one line for each comparison."""
    lines = ["| | chatserve | against | ratio | target | met |", "|---|---:|---:|---:|---:|---|"]
    return "\n".join([*lines, *(_line(each) for each in comparisons), ""])


def provenance(record: Mapping[str, Any], file_name: str) -> str:
    """Return the sentence under a table: when, where and on what it was measured."""
    machine, num_rounds = record["machine"], record["num_rounds"]
    rounds = "one round" if num_rounds == 1 else f"{num_rounds} rounds"
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"Medians of {rounds} on {machine['cores']} cores, {machine['processor']}, "
        f"{record['date']}, commit {record['commit']}; {versions}; "
        f"[raw figures](benchmarks/results/{file_name}).\n"
    )


def with_table(document: str, table: str) -> str:
    """Return the document with a new table between the markers.

    Raises:
        ValueError: The document has no such markers.
    """
    pattern = f"{re.escape(BEGIN)}.*?{re.escape(END)}"
    if not re.search(pattern, document, flags=re.S):
        raise ValueError(f"there is no {BEGIN} … {END} to write between")
    return re.sub(pattern, lambda _: f"{BEGIN}\n{table}{END}", document, flags=re.S)


def to_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "title": comparison.row.title,
        "unit": comparison.row.unit,
        "chatserve": comparison.ours,
        "peer_name": comparison.peer_name,
        "peer": comparison.peer,
        "ratio": comparison.ratio,
        "target": comparison.row.target,
        "is_met": comparison.is_met,
        "note": comparison.note,
    }


def _line(comparison: Comparison) -> str:
    row, ratio = comparison.row, comparison.ratio
    against = f"{comparison.peer_name} {_number(comparison.peer)}"
    target = f"{'≤' if row.is_time else '≥'} {row.target:g}×"
    met = {True: "yes", False: "no", None: comparison.note or "–"}[comparison.is_met]
    ratio_text = "–" if ratio is None else f"{ratio:.2f}×"
    return (
        f"| {row.title}, {row.unit} | {_number(comparison.ours)} | {against} "
        f"| {ratio_text} | {target} | {met} |"
    )


def _peer_name(row: Row, peer: Side) -> str:
    return BOUND if peer.contender == row.ours.contender else peer.contender


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
