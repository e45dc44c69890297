"""The scheduler on a model of integers: every answer must be the one the model gives alone."""

from collections.abc import Sequence

import pytest
from unit.cache_helpers import EOS, SchedulerRig, generate_alone, hash_model, make_request

from chatserve.cache.page_allocator import PageId
from chatserve.engine.api import FinishReason
from chatserve.engine.request import Request
from chatserve.errors import InvalidRequest

PROMPT = list(range(10, 30))


def expected(rig: SchedulerRig, request: Request) -> list[int]:
    prompt = request.token_ids[: request.num_prompt_tokens]
    return generate_alone(prompt, request.sampling.max_tokens, rig.next_token)


def test_a_prompt_longer_than_the_budget_is_computed_in_chunks() -> None:
    rig = SchedulerRig(max_num_batched_tokens=8)
    rig.add(make_request("a", PROMPT))

    chunks = [len(rig.step().scheduled[0].token_ids) for _ in range(3)]

    assert chunks == [8, 8, 4]
    assert rig.run()["a"] == generate_alone(PROMPT, 8, hash_model())


def test_decodes_come_first_and_prefill_takes_the_rest_of_the_budget() -> None:
    rig = SchedulerRig(max_num_batched_tokens=10)
    rig.add(make_request("a", PROMPT[:3], max_tokens=30))
    rig.step()
    rig.add(make_request("b", list(range(40, 60))))

    output = rig.step()

    assert [(run.request.request_id, len(run.token_ids)) for run in output.scheduled] == [
        ("a", 1),
        ("b", 9),
    ]


def step_tokens(rig: SchedulerRig) -> dict[str, int]:
    """Run a step; return how many tokens of each request it computed."""
    return {run.request.request_id: len(run.token_ids) for run in rig.step().scheduled}


def test_a_follow_up_does_not_wait_for_a_long_prompt_that_is_being_computed() -> None:
    rig = SchedulerRig(max_num_batched_tokens=16)
    rig.add(make_request("first turn", PROMPT, max_tokens=1))
    rig.run()
    rig.add(make_request("long", list(range(100, 160)), max_tokens=1))
    rig.step()
    rig.add(make_request("follow-up", [*PROMPT, 98, 99], max_tokens=1))

    assert step_tokens(rig) == {"follow-up": 2, "long": 14}


def test_what_is_quick_takes_a_quarter_of_a_step_and_no_more() -> None:
    rig = SchedulerRig(max_num_batched_tokens=16, max_num_seqs=16)
    rig.add(make_request("first turn", PROMPT, max_tokens=1))
    rig.run()
    rig.add(make_request("long", list(range(100, 160)), max_tokens=1))
    rig.step()
    rig.add(*(make_request(f"r{i}", [*PROMPT, 90 + i, 99], max_tokens=1) for i in range(3)))
    rig.add(make_request("other", list(range(200, 205)), max_tokens=1))

    assert step_tokens(rig) == {"r0": 2, "r1": 2, "long": 12}
    assert step_tokens(rig) == {"r2": 2, "long": 14}


def test_eight_streams_advance_in_every_step() -> None:
    rig = SchedulerRig(max_num_batched_tokens=16)
    rig.add(*(make_request(f"r{i}", [i + 3], max_tokens=20) for i in range(8)))
    rig.step()

    for _ in range(10):
        assert len(rig.step().scheduled) == 8


def test_a_second_request_takes_whole_pages_while_the_first_still_runs() -> None:
    rig = SchedulerRig()
    first = make_request("a", PROMPT, max_tokens=20)
    rig.add(first)
    rig.step()
    second = make_request("b", [*PROMPT, 99])
    rig.add(second)
    rig.step()

    assert second.num_cached_tokens == 20
    assert second.held is not None
    assert first.held is not None
    assert second.held.page_ids[:5] == first.held.page_ids[:5]
    assert rig.cache.allocator.num_shared == 5


def test_after_the_first_has_finished_the_partly_filled_page_is_cached_too() -> None:
    rig = SchedulerRig()
    rig.add(make_request("a", PROMPT[:18], max_tokens=1))
    rig.run()
    second = make_request("b", [*PROMPT[:18], 99, 98])
    rig.add(second)

    output = rig.step()

    assert second.num_cached_tokens == 18
    assert [copy.num_tokens for copy in output.page_copies] == [2]
    assert rig.run()["b"] == expected(rig, second)


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_fork_at_every_cut_computes_only_what_differs(cut: int) -> None:
    rig = SchedulerRig()
    rig.add(make_request("a", PROMPT))
    rig.run()
    fork = make_request("b", [*PROMPT[:cut], *range(50, 60)])
    rig.add(fork)

    assert rig.run()["b"] == expected(rig, fork)

    assert fork.num_cached_tokens == cut


@pytest.mark.parametrize("length", [1, 3, 4, 5, 7, 8, 9, 16])
def test_the_last_prompt_token_is_always_computed(length: int) -> None:
    rig = SchedulerRig()
    for name in ("a", "b"):
        rig.add(make_request(name, PROMPT[:length]))
        rig.run()

    assert rig.outputs["a"] == rig.outputs["b"]


def test_one_leads_and_the_others_wait_for_its_pages() -> None:
    rig = SchedulerRig(max_num_batched_tokens=8)
    requests = [make_request(f"r{i}", [*PROMPT, 100 + i]) for i in range(4)]
    rig.add(*requests)

    assert len(rig.step().scheduled) == 1
    rig.run()

    assert [request.num_cached_tokens for request in requests] == [0, 20, 20, 20]
    assert all(rig.outputs[request.request_id] == expected(rig, request) for request in requests)


def test_when_the_leader_is_aborted_a_waiter_leads() -> None:
    rig = SchedulerRig(max_num_batched_tokens=8)
    requests = [make_request(f"r{i}", [*PROMPT, 100 + i]) for i in range(3)]
    rig.add(*requests)
    rig.step()

    rig.scheduler.abort([requests[0].request_id])
    assert rig.step().scheduled[0].request is requests[1]

    assert rig.run()["r2"] == expected(rig, requests[2])


def test_a_request_with_another_prompt_overtakes_those_that_wait_for_a_leader() -> None:
    rig = SchedulerRig(max_num_batched_tokens=12)
    other = make_request("other", [70, 71])
    rig.add(make_request("a", PROMPT), make_request("b", [*PROMPT, 1]), other)

    rig.step()
    output = rig.step()

    assert other in [run.request for run in output.scheduled]


def test_two_that_computed_the_same_page_end_on_one_copy() -> None:
    rig = SchedulerRig(page_size=4, max_num_batched_tokens=4)
    first, second = make_request("a", [5, 6, 7], 12), make_request("b", [5, 6, 7], 12)
    rig.add(first)
    rig.step()
    rig.add(second)
    for _ in range(8):
        rig.step()

    assert first.held is not None
    assert second.held is not None
    assert first.held.page_ids[:2] == second.held.page_ids[:2]


@pytest.mark.parametrize("prefix_cache", [True, False])
@pytest.mark.parametrize("num_pages", range(9, 16))
def test_a_pool_that_is_too_small_preempts_and_changes_no_token(
    num_pages: int, prefix_cache: bool
) -> None:
    rig = SchedulerRig(num_pages=num_pages, page_size=4, prefix_cache=prefix_cache)
    requests = [make_request(f"r{i}", [i + 3] * (i + 5), max_tokens=20) for i in range(4)]
    rig.add(*requests)

    rig.run()

    assert all(rig.outputs[request.request_id] == expected(rig, request) for request in requests)
    assert rig.scheduler.num_preemptions > 0 or num_pages > 13
    assert rig.cache.allocator.num_used == 0


def test_preemption_sends_back_the_youngest_and_only_as_many_as_needed() -> None:
    rig = SchedulerRig(num_pages=6, page_size=4)
    old, young = make_request("a", [3] * 8, 20), make_request("b", [4] * 8, 20)
    rig.add(old, young)

    preempted: list[Request] = []
    while not preempted:
        preempted = rig.step().preempted

    assert preempted == [young]


def test_a_fully_cached_prompt_as_long_as_the_pool_is_admitted_without_its_copy() -> None:
    """Source and destination of a copy do not fit beside everything else in a full pool."""
    rig = SchedulerRig(num_pages=4, page_size=4)
    prompt = list(range(20, 34))
    rig.add(make_request("a", prompt, max_tokens=1))
    rig.run()
    again = make_request("b", [*prompt[:-1], 99], max_tokens=2)
    rig.add(again)

    assert rig.run()["b"] == expected(rig, again)


def test_a_prompt_that_can_never_fit_is_refused_with_the_sizes() -> None:
    rig = SchedulerRig(num_pages=8, page_size=4)

    with pytest.raises(InvalidRequest, match=r"200 tokens.*32 tokens"):
        rig.add(make_request("big", [1] * 200))

    small = make_request("small", [1, 2])
    rig.add(small)
    assert rig.run()["small"] == expected(rig, small)


def test_finished_requests_fill_the_cache_and_are_evicted_for_the_next() -> None:
    rig = SchedulerRig(num_pages=8, page_size=4)
    for index in range(12):
        rig.add(make_request(f"r{index}", [index + 3] * 12, max_tokens=2))
        rig.run()

    assert rig.cache.allocator.num_used == 0
    assert len(rig.outputs) == 12


@pytest.mark.parametrize("num_steps", range(12))
def test_an_abort_at_any_step_frees_everything_at_once(num_steps: int) -> None:
    rig = SchedulerRig(max_num_batched_tokens=6)
    request = make_request("a", PROMPT, max_tokens=6)
    rig.add(request)
    for _ in range(num_steps):
        rig.step()

    rig.scheduler.abort([request.request_id])
    rig.scheduler.abort([request.request_id])

    assert not rig.scheduler.has_work
    assert rig.cache.allocator.num_used == 0
    rig.scheduler.check_invariants()


def test_an_empty_step_is_legal() -> None:
    rig = SchedulerRig()

    output = rig.scheduler.schedule()

    assert rig.scheduler.update(output, {}) == []


def test_logits_that_are_not_finite_end_that_request_alone() -> None:
    def next_token(history: Sequence[int]) -> int | None:
        return None if 66 in history else hash_model()(history)

    rig = SchedulerRig(next_token=next_token)
    rig.add(*(make_request(f"r{i}", [3, 4, 66 if i == 1 else i]) for i in range(4)))

    rig.run()

    assert rig.ends["r1"] is FinishReason.ERROR
    assert [rig.ends[f"r{i}"] for i in (0, 2, 3)] == [FinishReason.LENGTH] * 3
    assert rig.cache.match_prefix([3, 4, 66, 0]).num_tokens(4) < 3


def test_a_request_that_failed_leaves_no_tail_behind_in_the_cache() -> None:
    rig = SchedulerRig(page_size=4, next_token=lambda history: None)
    rig.add(make_request("a", [3, 4, 5]))

    rig.run()

    assert rig.cache.tree.num_nodes == 0
    assert rig.cache.allocator.num_free == 64


def test_eos_ends_a_request_unless_it_is_ignored() -> None:
    rig = SchedulerRig(next_token=lambda history: EOS)
    rig.add(make_request("a", [5], max_tokens=4))
    rig.add(make_request("b", [6], max_tokens=4, ignore_eos=True))

    rig.run()

    assert (rig.outputs["a"], rig.ends["a"]) == ([EOS], FinishReason.STOP)
    assert (rig.outputs["b"], rig.ends["b"]) == ([EOS] * 4, FinishReason.LENGTH)


def test_the_end_of_the_context_ends_a_request() -> None:
    rig = SchedulerRig(num_pages=4, page_size=4)
    rig.add(make_request("a", [5] * 10, max_tokens=100))

    rig.run()

    assert rig.ends["a"] is FinishReason.LENGTH
    assert len(rig.outputs["a"]) == 6


@pytest.mark.parametrize("failing", range(1, 40))
def test_whichever_allocation_fails_nothing_leaks_and_no_token_changes(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = SchedulerRig(num_pages=24, page_size=2, max_num_batched_tokens=8)
    allocate, calls = rig.cache.allocator.try_allocate, 0

    def try_allocate(count: int) -> list[PageId] | None:
        nonlocal calls
        calls += 1
        return None if calls == failing else allocate(count)

    monkeypatch.setattr(rig.cache.allocator, "try_allocate", try_allocate)
    requests = [make_request(f"r{i}", [3, 4, 5, 6, i, i], max_tokens=7) for i in range(4)]
    rig.add(*requests)

    for _ in range(200):
        output = rig.scheduler.schedule()
        for result in rig.scheduler.update(output, rig.runner.execute(output)):
            assert result.token_id is not None
            rig.outputs.setdefault(result.request.request_id, []).append(result.token_id)
        rig.scheduler.check_invariants()

    assert not rig.scheduler.has_work
    assert all(rig.outputs[request.request_id] == expected(rig, request) for request in requests)
    assert rig.cache.allocator.num_used == 0
