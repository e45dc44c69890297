"""What branches off a prompt or a conversation computes only what is new, wherever it does."""

from collections import Counter

import pytest
from unit.cache_helpers import SchedulerRig, generate_alone, make_request

from chatserve.engine.request import Request

PROMPT = list(range(10, 30))
PAGE_SIZES = [1, 2, 4, 16]

page_sizes = pytest.mark.parametrize("page_size", PAGE_SIZES)


def run_counting(rig: SchedulerRig, *requests: Request) -> dict[str, int]:
    """Run requests to their ends; return how many tokens of its prompt each had computed."""
    rig.add(*requests)
    computed: Counter[str] = Counter()
    while rig.scheduler.has_work:
        for run in rig.step().scheduled:
            prompt_end = min(run.end, run.request.num_prompt_tokens)
            computed[run.request.request_id] += max(0, prompt_end - run.start)
    for request in requests:
        prompt = request.token_ids[: request.num_prompt_tokens]
        alone = generate_alone(prompt, request.sampling.max_tokens, rig.next_token)
        assert rig.outputs[request.request_id] == alone
    assert rig.cache.allocator.num_used == 0
    return {request.request_id: computed[request.request_id] for request in requests}


# ── Several answers to one prompt ────────────────────────────────────────────────────────────


@page_sizes
@pytest.mark.parametrize("length", range(17, 34))
def test_of_several_answers_one_computes_the_prompt_and_each_other_one_token(
    page_size: int, length: int
) -> None:
    rig = SchedulerRig(page_size=page_size, max_num_batched_tokens=64, num_pages=256 // page_size)
    prompt = list(range(10, 10 + length))

    computed = run_counting(rig, *(make_request(f"r{i}", prompt, 6) for i in range(4)))

    assert sorted(computed.values()) == [1, 1, 1, length]


@page_sizes
@pytest.mark.parametrize("budget", [5, 7, 16])
def test_answers_wait_for_a_prompt_that_is_computed_in_chunks(page_size: int, budget: int) -> None:
    """They may join in when less than a page is missing, and compute that part themselves."""
    rig = SchedulerRig(
        page_size=page_size, max_num_batched_tokens=budget, num_pages=512 // page_size
    )

    computed = run_counting(rig, *(make_request(f"r{i}", list(range(10, 50)), 6) for i in range(3)))

    *others, leader = sorted(computed.values())
    assert leader == 40
    assert max(others) <= max(1, page_size - 1)


@page_sizes
@pytest.mark.parametrize("num_steps", range(1, 9))
def test_another_answer_can_be_asked_for_at_any_step_of_the_first(
    page_size: int, num_steps: int
) -> None:
    rig = SchedulerRig(page_size=page_size, num_pages=256 // page_size)
    first = make_request("first", PROMPT, 12)
    rig.add(first)
    for _ in range(num_steps):
        rig.step()

    computed = run_counting(rig, make_request("second", PROMPT, 12))

    assert computed == {"second": 1}
    assert rig.outputs["first"] == rig.outputs["second"]


@page_sizes
def test_answers_of_a_prompt_that_ended_long_ago_compute_one_token_each(page_size: int) -> None:
    rig = SchedulerRig(page_size=page_size, num_pages=256 // page_size)
    run_counting(rig, make_request("first", PROMPT))

    computed = run_counting(rig, *(make_request(f"r{i}", PROMPT) for i in range(3)))

    assert computed == {"r0": 1, "r1": 1, "r2": 1}


@pytest.mark.parametrize("length", range(1, 5))
def test_a_prompt_of_no_whole_page_is_not_worth_waiting_for(length: int) -> None:
    """A step of waiting costs more than a few tokens that are computed in the same step anyway."""
    rig = SchedulerRig(page_size=4)
    rig.add(*(make_request(f"r{i}", PROMPT[:length]) for i in range(3)))

    output = rig.step()

    assert [len(run.token_ids) for run in output.scheduled] == [length] * 3
    rig.run()
    assert rig.outputs["r0"] == rig.outputs["r1"] == rig.outputs["r2"]


@page_sizes
def test_answers_share_all_pages_but_the_one_each_writes(page_size: int) -> None:
    rig = SchedulerRig(page_size=page_size, max_num_batched_tokens=64, num_pages=512 // page_size)
    prompt = list(range(10, 43))
    rig.add(*(make_request(f"r{i}", prompt, 8, ignore_eos=True) for i in range(8)))
    rig.step()
    rig.step()

    whole = (len(prompt) - 1) // page_size

    assert len(rig.scheduler.running) == 8
    assert rig.cache.allocator.num_shared >= whole
    private = [set(r.held.page_ids[whole + 1 :]) for r in rig.scheduler.running if r.held]
    assert not set.intersection(*private)
    rig.run()


# ── Edits and regenerations ──────────────────────────────────────────────────────────────────


@page_sizes
@pytest.mark.parametrize("cut", range(1, 27))
def test_an_edit_at_any_cut_of_a_conversation_computes_what_follows_it(
    page_size: int, cut: int
) -> None:
    """The prompt has 20 tokens and the answer 8, of which the last has no KV yet."""
    rig = SchedulerRig(page_size=page_size, num_pages=256 // page_size)
    first = make_request("first", PROMPT, 8, ignore_eos=True)
    run_counting(rig, first)
    edited = [*first.token_ids[:cut], *range(60, 65)]

    computed = run_counting(rig, make_request("edit", edited))

    assert computed == {"edit": 5}


@page_sizes
@pytest.mark.parametrize("cut", range(1, 21))
def test_a_regeneration_at_any_cut_computes_one_token(page_size: int, cut: int) -> None:
    rig = SchedulerRig(page_size=page_size, num_pages=256 // page_size)
    run_counting(rig, make_request("first", PROMPT, 8))

    computed = run_counting(rig, make_request("again", PROMPT[:cut]))

    assert computed == {"again": 1}


@page_sizes
def test_the_next_turn_computes_the_last_token_of_the_answer_and_what_is_new(
    page_size: int,
) -> None:
    rig = SchedulerRig(page_size=page_size, num_pages=256 // page_size)
    first = make_request("first", PROMPT, 8, ignore_eos=True)
    run_counting(rig, first)

    computed = run_counting(rig, make_request("next", [*first.token_ids, 70, 71, 72]))

    assert computed == {"next": 1 + 3}


@page_sizes
@pytest.mark.parametrize("num_steps", range(1, 8))
def test_an_edit_of_an_answer_that_is_still_being_written_goes_on_from_it(
    page_size: int, num_steps: int
) -> None:
    rig = SchedulerRig(page_size=page_size, num_pages=256 // page_size)
    first = make_request("first", PROMPT, 12, ignore_eos=True)
    rig.add(first)
    for _ in range(num_steps):
        rig.step()
    known = first.num_computed_tokens

    computed = run_counting(rig, make_request("edit", [*first.token_ids[:known], 70, 71]))

    assert computed == {"edit": 2}


@page_sizes
def test_branches_of_branches_each_pay_for_their_own_tokens_only(page_size: int) -> None:
    rig = SchedulerRig(page_size=page_size, num_pages=512 // page_size)
    trunk = list(PROMPT)
    run_counting(rig, make_request("trunk", trunk))

    for depth in range(6):
        trunk = [*trunk[: len(trunk) - 3], *range(100 + 10 * depth, 105 + 10 * depth)]
        computed = run_counting(rig, make_request(f"branch {depth}", trunk))

        assert computed == {f"branch {depth}": 5}
