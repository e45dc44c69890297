"""Who has to step back when pages are short: the youngest of the tenant that is furthest ahead."""

import pytest
from unit.cache_helpers import SchedulerRig, generate_alone, make_request

from chatserve.engine.request import Request
from chatserve.engine.tenant_shares import TenantShares


def run_until_preempted(rig: SchedulerRig) -> list[Request]:
    for _ in range(200):
        preempted = rig.step().preempted
        if preempted:
            return preempted
    raise AssertionError("nobody was preempted")


def check_answers(rig: SchedulerRig, *requests: Request) -> None:
    for request in requests:
        prompt = request.token_ids[: request.num_prompt_tokens]
        alone = generate_alone(prompt, request.sampling.max_tokens, rig.next_token)
        assert rig.outputs[request.request_id] == alone


# ── Counters ─────────────────────────────────────────────────────────────────────────────────


def test_an_output_token_counts_twice_an_input_token() -> None:
    shares = TenantShares()
    shares.enter("a")

    shares.charge("a", 10, 3)

    assert shares.served("a") == 16


def test_whoever_comes_starts_where_the_one_furthest_behind_is() -> None:
    shares = TenantShares()
    shares.enter("a")
    shares.enter("b")
    shares.charge("a", 100, 0)
    shares.charge("b", 40, 0)

    shares.enter("c")

    assert shares.served("c") == 40


def test_nobody_saves_up_turns_by_being_away() -> None:
    shares = TenantShares()
    shares.enter("a")
    shares.enter("b")
    shares.charge("b", 5, 0)
    shares.leave("b")
    shares.charge("a", 100, 0)

    shares.enter("b")

    assert shares.served("b") == 100


def test_a_tenant_keeps_its_count_until_its_last_request_ends() -> None:
    shares = TenantShares()
    shares.enter("a")
    shares.enter("a")
    shares.charge("a", 7, 0)

    shares.leave("a")

    assert shares.served("a") == 7


# ── Victims ──────────────────────────────────────────────────────────────────────────────────


def test_the_tenant_furthest_ahead_steps_back_though_its_request_is_older() -> None:
    rig = SchedulerRig(num_pages=12, page_size=4)
    oldest = make_request("oldest", [3] * 4, 16, tenant="b", ignore_eos=True)
    ahead = make_request("ahead", [4] * 16, 16, tenant="a", ignore_eos=True)
    young = make_request("young", [5] * 4, 16, tenant="b", ignore_eos=True)
    rig.add(oldest)
    rig.add(ahead)
    for _ in range(6):
        rig.step()
    rig.add(young)

    assert run_until_preempted(rig) == [ahead]

    rig.run()
    check_answers(rig, oldest, ahead, young)


def test_of_one_tenant_the_youngest_steps_back() -> None:
    rig = SchedulerRig(num_pages=9, page_size=4)
    requests = [make_request(f"r{i}", [3 + i] * 8, 20, tenant="a") for i in range(3)]
    rig.add(*requests)

    assert run_until_preempted(rig) == [requests[2]]


def test_the_oldest_is_spared_though_its_tenant_is_furthest_ahead() -> None:
    rig = SchedulerRig(num_pages=9, page_size=4)
    oldest = make_request("oldest", [3] * 16, 20, tenant="a", ignore_eos=True)
    others = [make_request(f"r{i}", [4 + i] * 4, 20, tenant="b", ignore_eos=True) for i in range(2)]
    rig.add(oldest, *others)

    preempted = run_until_preempted(rig)

    assert oldest not in preempted
    rig.run()
    assert rig.scheduler.num_preemptions > 0
    check_answers(rig, oldest, *others)


def test_no_more_requests_step_back_than_the_growing_one_needs_pages() -> None:
    rig = SchedulerRig(num_pages=12, page_size=2, max_num_seqs=6)
    requests = [make_request(f"r{i}", [3 + i] * 3, 16, tenant="ab"[i % 2]) for i in range(6)]
    rig.add(*requests)

    while rig.scheduler.has_work:
        free_before = rig.cache.num_available_pages
        growing = sum(
            rig.cache.pages_for(each.num_tokens) > len(each.held.page_ids)
            for each in rig.scheduler.running
            if each.held is not None
        )
        preempted = rig.step().preempted
        assert len(preempted) <= max(0, growing - free_before)

    check_answers(rig, *requests)


@pytest.mark.parametrize("num_pages", range(7, 14))
@pytest.mark.parametrize("tenants", ["aab", "aba", "baa", "abc"])
def test_stepping_back_changes_no_token_whoever_it_is(num_pages: int, tenants: str) -> None:
    """A victim that stood before the growing request was computed on pages it had given back."""
    rig = SchedulerRig(num_pages=num_pages, page_size=2, max_num_seqs=3)
    requests = [
        make_request(f"r{i}", [3 + i] * (2 + 3 * i), 12 - 3 * i, tenant=tenant, ignore_eos=True)
        for i, tenant in enumerate(tenants)
    ]
    rig.add(*requests)

    rig.run()

    check_answers(rig, *requests)
    assert rig.scheduler.num_preemptions > 0
    assert rig.cache.allocator.num_used == 0
