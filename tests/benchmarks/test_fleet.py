"""The simulated fleet runs, and routing by prefix and load is worth what it claims there."""

import pytest

from benchmarks import fleet
from benchmarks.fleet import Policy, Simulation, Size

SMALL = Size(workers=8, sessions=1_000, tenants=60)


def test_routing_by_prefix_finds_more_in_caches_than_turns_do() -> None:
    ours = Simulation(SMALL, Policy.OURS).run()
    turns = Simulation(SMALL, Policy.ROUND_ROBIN).run()

    assert ours.hit_rate > turns.hit_rate + 0.1
    assert ours.ttft_p50_s < turns.ttft_p50_s


@pytest.mark.parametrize("policy", list(Policy))
def test_every_turn_of_every_session_is_answered_although_a_worker_dies(policy: Policy) -> None:
    simulation = Simulation(SMALL, policy, seed=3)

    figures = simulation.run()

    assert simulation.num_in_flight == 0
    assert figures.num_answers > SMALL.sessions
    assert 0 < figures.hit_rate < 1


def test_quick_run_prints_a_row_for_every_policy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fleet", "--quick"])
    monkeypatch.setattr(fleet, "QUICK", SMALL)

    fleet.main()

    printed = capsys.readouterr().out
    assert all(f"\n{policy}" in printed for policy in Policy)
    assert "raw figures" not in printed
