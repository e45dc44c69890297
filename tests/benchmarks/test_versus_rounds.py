"""Whose turn it is, and what becomes of those who fail."""

import json
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from benchmarks.chat_load.clients import Answer
from benchmarks.chat_load.figures import LoadFigures
from benchmarks.peers.layout import PeerError, PeerFolder, PeerModel, default_folder
from benchmarks.peers.servers import LlamaFlags
from benchmarks.versus.contenders import (
    Contender,
    Figures,
    all_contenders,
    load_figures,
)
from benchmarks.versus.jobs import Effort, Job
from benchmarks.versus.rounds import Measurement, RoundPlan, jobs_by_contender, run_rounds
from benchmarks.versus.rows import ENGINE, LLAMA, OURS, VLLM, Row, Side, all_rows

SINGLE = Row(
    "single",
    "single",
    "tokens/s",
    Side("us", Job.SINGLE, "output_tok_s"),
    (Side("them", Job.SINGLE, "output_tok_s"),),
    target=1.0,
)
PLAN = RoundPlan(num_rounds=2, is_quick=False, seed="seed")


@dataclass
class Scripted:
    """A contender that notes its turns and has one figure for each of them, or fails."""

    name: str
    turns: list[str]
    speeds: list[float]
    reason: str | None = None
    model: PeerModel = PeerModel.DEFAULT
    efforts: list[Effort] = field(default_factory=list)

    def missing(self) -> str | None:
        return self.reason

    def measure(self, jobs: Collection[Job], effort: Effort) -> Figures:
        self.turns.append(self.name)
        self.efforts.append(effort)
        if not self.speeds:
            raise PeerError("did not come up\nits log")
        return {(job, "output_tok_s"): self.speeds.pop(0) for job in jobs}


def run(us: Scripted, them: Scripted) -> Measurement:
    contenders: dict[str, Contender] = {"us": us, "them": them}
    return run_rounds(contenders, [SINGLE], PLAN, lambda line: None)


def test_the_sides_take_turns_with_the_same_prompts() -> None:
    turns: list[str] = []
    us, them = Scripted("us", turns, [1.0, 2.0]), Scripted("them", turns, [3.0, 4.0])

    measurement = run(us, them)

    assert turns == ["us", "them", "us", "them"]
    assert us.efforts == them.efforts
    assert us.efforts[0].seed != us.efforts[1].seed
    assert measurement.samples[SINGLE.ours] == [1.0, 2.0]
    assert measurement.samples[SINGLE.peers[0]] == [3.0, 4.0]


def test_a_missing_contender_gets_no_turn() -> None:
    turns: list[str] = []

    measurement = run(
        Scripted("us", turns, [1.0, 2.0]), Scripted("them", turns, [], reason="not installed")
    )

    assert turns == ["us", "us"]
    assert measurement.problems == {"them": "not installed"}


def test_a_contender_that_fails_is_left_out_from_then_on() -> None:
    turns: list[str] = []

    measurement = run(Scripted("us", turns, [1.0, 2.0]), Scripted("them", turns, []))

    assert turns == ["us", "them", "us"]
    assert measurement.problems == {"them": "did not come up"}


def test_a_measurement_survives_its_record() -> None:
    measurement = Measurement({SINGLE.ours: [1.0, 2.0]}, {"them": "not installed"})

    restored = Measurement.from_json(json.loads(json.dumps(measurement.to_json())))

    assert restored == measurement


def test_every_side_of_every_row_is_somebody() -> None:
    contenders = all_contenders(default_folder(), LlamaFlags())

    names = {side.contender for row in all_rows() for side in row.sides}

    assert names == set(contenders)


def test_a_contender_does_only_what_the_rows_ask() -> None:
    contenders = all_contenders(default_folder(), LlamaFlags())
    rows = [row for row in all_rows() if row.key in ("burst", "step")]

    jobs = jobs_by_contender(contenders, rows)

    assert jobs == {
        OURS: [Job.BURST],
        LLAMA: [Job.BURST],
        VLLM: [Job.BURST],
        ENGINE: [Job.STEP_1, Job.STEP_16],
    }


def test_peers_that_are_not_installed_say_how_to_install_them() -> None:
    contenders = all_contenders(PeerFolder(default_folder().root / "nowhere"), LlamaFlags())

    assert contenders[VLLM].missing() == "not installed: make bench-peers"
    assert contenders[LLAMA].missing() == "not installed: make bench-peers"
    assert contenders[OURS].missing() is None


def test_a_load_with_errors_has_no_figures() -> None:
    failed = LoadFigures.of([Answer(1, error="refused")], seconds=1.0)

    with pytest.raises(PeerError, match="1 of 1 answers failed: refused"):
        load_figures(failed)


def test_a_larger_model_takes_shorter_loads() -> None:
    small, large = (PLAN.effort(0, model) for model in (PeerModel.DEFAULT, PeerModel.QWEN_SHAPE))

    assert large.load(Job.SHARED_SYSTEM).num_sessions < small.load(Job.SHARED_SYSTEM).num_sessions
    assert large.load(Job.BURST) == small.load(Job.BURST)
