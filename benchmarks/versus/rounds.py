"""Lets the contenders take turns, round after round, and keeps what each of them measured.

Owns the order: in every round each contender has one turn, ours followed by its peers, so that
whatever slows the machine for a while slows all sides. A contender that fails is named with its
reason and left out from then on; the others go on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Self

from benchmarks.peers.layout import PeerError, PeerModel
from benchmarks.service import ServiceFailed
from benchmarks.versus.contenders import Contender, Figures
from benchmarks.versus.jobs import Effort, Job
from benchmarks.versus.rows import Row, Side

Report = Callable[[str], None]


@dataclass(slots=True)
class Measurement:
    """What was measured, one value a round, and why contenders have no values."""

    samples: dict[Side, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def take(self, contender: str, figures: Figures) -> None:
        for (job, figure), value in figures.items():
            self.samples.setdefault(Side(contender, job, figure), []).append(value)

    def median_of(self, side: Side) -> float | None:
        values = self.samples.get(side)
        return median(values) if values else None

    def to_json(self) -> dict[str, Any]:
        samples = [{**side._asdict(), "values": values} for side, values in self.samples.items()]
        return {"samples": samples, "problems": self.problems}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        samples = {
            Side(each["contender"], Job(each["job"]), each["figure"]): each["values"]
            for each in record["samples"]
        }
        return cls(samples, dict(record["problems"]))


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """How many rounds, how long each, and the seed of the prompts, which are new in every round."""

    num_rounds: int
    is_quick: bool
    seed: str

    def effort(self, number: int, model: PeerModel) -> Effort:
        is_large = model is PeerModel.QWEN_SHAPE
        return Effort(f"{self.seed}/{number}", is_light=self.is_quick or is_large)


def run_rounds(
    contenders: Mapping[str, Contender], rows: Sequence[Row], plan: RoundPlan, report: Report
) -> Measurement:
    """Measure every side of the rows, `plan.num_rounds` times each."""
    measurement, wanted = Measurement(), jobs_by_contender(contenders, rows)
    for name in wanted:
        if reason := contenders[name].missing():
            measurement.problems[name] = reason
            report(f"{name}: {reason}")
    for number in range(plan.num_rounds):
        for name, jobs in wanted.items():
            if name in measurement.problems:
                continue
            contender = contenders[name]
            report(f"round {number + 1} of {plan.num_rounds}: {name}: {', '.join(jobs)}")
            try:
                figures = contender.measure(jobs, plan.effort(number, contender.model))
            except (PeerError, ServiceFailed) as error:
                measurement.problems[name] = str(error).partition("\n")[0]
                report(str(error))
            else:
                measurement.take(name, figures)
    return measurement


def jobs_by_contender(
    contenders: Mapping[str, Contender], rows: Sequence[Row]
) -> dict[str, list[Job]]:
    """Return what each contender has to do for the rows, in the order of turns and of jobs."""
    sides = {side for row in rows for side in row.sides}
    jobs = {
        name: [job for job in Job if any(side[:2] == (name, job) for side in sides)]
        for name in contenders
    }
    return {name: each for name, each in jobs.items() if each}
