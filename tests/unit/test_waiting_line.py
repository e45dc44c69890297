"""Who is admitted next: those with least to compute, and nobody waits for ever."""

import pytest
from unit.cache_helpers import SchedulerRig, generate_alone, make_request

from chatserve.engine.request import Request
from chatserve.engine.waiting_line import AGE_CREDIT, LOOKAHEAD, WaitingLine


def names(requests: list[Request]) -> list[str]:
    return [request.request_id for request in requests]


def in_order(line: WaitingLine, uncached: dict[str, int]) -> list[str]:
    return names(line.in_order(lambda request: uncached.get(request.request_id, 0)))


def make_line(*requests: Request) -> WaitingLine:
    line = WaitingLine()
    for request in requests:
        line.add(request)
    return line


def test_whoever_has_least_to_compute_goes_first() -> None:
    line = make_line(*(make_request(name, [1]) for name in ("cold", "hot", "warm")))

    assert in_order(line, {"cold": 100, "hot": 1, "warm": 50}) == ["hot", "warm", "cold"]


def test_among_equals_the_first_to_come_is_the_first_to_go() -> None:
    line = make_line(*(make_request(name, [1]) for name in "cab"))

    assert in_order(line, {"a": 5, "b": 5, "c": 5}) == ["c", "a", "b"]


def test_a_step_of_waiting_is_worth_its_credit() -> None:
    line = make_line(make_request("cold", [1]))
    line.count_step()
    line.add(make_request("hot", [1]))

    assert in_order(line, {"cold": AGE_CREDIT + 1}) == ["hot", "cold"]
    assert in_order(line, {"cold": AGE_CREDIT}) == ["cold", "hot"]


def test_whoever_has_run_before_comes_before_everybody_else() -> None:
    preempted = make_request("preempted", [1])
    preempted.num_cached_tokens = 0
    line = make_line(make_request("hot", [1]), preempted)

    assert in_order(line, {"preempted": 1000}) == ["preempted", "hot"]
    line.check_invariants()


def test_no_more_requests_are_compared_than_the_lookahead() -> None:
    line = make_line(*(make_request(f"r{i}", [1]) for i in range(LOOKAHEAD + 10)))

    assert len(in_order(line, {})) == LOOKAHEAD
    assert len(line) == LOOKAHEAD + 10


def test_whoever_leaves_the_line_is_not_tried() -> None:
    first, second = make_request("first", [1]), make_request("second", [1])
    line = make_line(first, second)

    line.remove(first)

    assert in_order(line, {}) == ["second"]


# ── A cold request under an endless stream of hot ones ───────────────────────────────────────

HOT = list(range(1000, 1008))


def serving_one_at_a_time() -> SchedulerRig:
    """Return an engine of one seat that knows the hot prompt; every answer is one token."""
    rig = SchedulerRig(num_pages=400, max_num_seqs=1, max_num_batched_tokens=512)
    rig.add(make_request("first", HOT, max_tokens=1))
    rig.run()
    return rig


def steps_passed(num_tokens: int) -> int:
    """Return for how many steps hot requests that come later may pass a cold one."""
    return -(-(num_tokens - 1) // AGE_CREDIT)


@pytest.mark.parametrize("num_tokens", [1, 2, 31, 33, 34, 64, 65, 66, 100, 500])
def test_a_cold_request_waits_one_step_for_each_credit_that_it_has_to_compute(
    num_tokens: int,
) -> None:
    rig, prompt = serving_one_at_a_time(), list(range(2000, 2000 + num_tokens))
    cold = make_request("cold", prompt, max_tokens=1)
    rig.add(cold)

    waited = -1
    while cold.num_cached_tokens is None:
        waited += 1
        rig.add(make_request(f"hot {waited}", HOT, max_tokens=1))
        rig.step()

    assert waited == steps_passed(num_tokens)
    assert rig.outputs["cold"] == generate_alone(prompt, 1, rig.next_token)


@pytest.mark.parametrize("num_a_step", [2, 3, 5])
def test_however_many_hot_requests_come_only_the_first_of_them_pass_a_cold_one(
    num_a_step: int,
) -> None:
    rig, num_tokens = serving_one_at_a_time(), 200
    cold = make_request("cold", list(range(2000, 2000 + num_tokens)), max_tokens=1)
    rig.add(cold)

    passed: list[Request] = []
    while cold.num_cached_tokens is None:
        more = [f"hot {len(passed)}.{number}" for number in range(num_a_step)]
        rig.add(*(make_request(name, HOT, max_tokens=1) for name in more))
        passed += rig.step().admitted

    came = [each.queued_step - cold.queued_step for each in passed if each is not cold]
    assert max(came) < steps_passed(num_tokens)
    assert len(came) == num_a_step * steps_passed(num_tokens)


def test_a_cold_request_behind_more_than_are_compared_is_passed_no_more_often() -> None:
    rig, num_before, num_tokens = serving_one_at_a_time(), LOOKAHEAD + 8, 100
    before = [make_request(f"before {i}", HOT, max_tokens=1) for i in range(num_before)]
    cold = make_request("cold", list(range(2000, 2000 + num_tokens)), max_tokens=1)
    rig.add(*before, cold)

    waited = -1
    while cold.num_cached_tokens is None:
        waited += 1
        rig.add(make_request(f"after {waited}", HOT, max_tokens=1))
        rig.step()

    assert waited == num_before + steps_passed(num_tokens)
