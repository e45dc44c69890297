"""Whichever allocation of pages fails: nothing leaks, no token changes, nothing is left waiting.

Each scenario is run with its first allocation failing, then with its second, and so on, until it
gets by with fewer than would have to fail.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from unit.cache_helpers import Keeping, SchedulerRig, generate_alone, make_request

from chatserve.cache.page_allocator import PageId
from chatserve.cache.pins import PinLimits
from chatserve.engine.api import KeptPrefix, PrefixState
from chatserve.engine.request import Request

PREAMBLE = KeptPrefix("", "preamble", tuple(range(10, 15)))
PROMPT = KeptPrefix("a", "support", (*range(10, 15), *range(30, 36)))
OTHER_PROMPT = KeptPrefix("a", "sales", (*range(10, 15), *range(40, 43)))
UNPINNED = KeptPrefix("b", "draft", (*range(10, 15), *range(50, 56)), is_pinned=False, ttl_s=9.0)

MAX_ALLOCATIONS = 500


class FailingOnce:
    """Stands in for a method that allocates, and gives nothing at one call."""

    def __init__(self, allocate: Callable[[int], list[PageId] | None], failing: int):
        self._allocate, self._failing = allocate, failing
        self.num_calls = 0

    def __call__(self, count: int) -> list[PageId] | None:
        self.num_calls += 1
        return None if self.num_calls == self._failing else self._allocate(count)

    @property
    def has_failed(self) -> bool:
        return self.num_calls >= self._failing


Scenario = Callable[[SchedulerRig], list[Request]]


def several_answers(rig: SchedulerRig) -> list[Request]:
    requests = [make_request(f"r{i}", list(range(10, 21)), 6) for i in range(3)]
    rig.add(*requests)
    return requests


def edits_at_every_step(rig: SchedulerRig) -> list[Request]:
    requests = [make_request("first", list(range(10, 19)), 8)]
    rig.add(*requests)
    for number in range(5):
        rig.step()
        prompt = [*requests[0].token_ids[: 5 + number], 60 + number, 61]
        requests.append(make_request(f"edit {number}", prompt, 4))
        rig.add(requests[-1])
    return requests


def more_than_the_pool_holds(rig: SchedulerRig) -> list[Request]:
    requests = [make_request(f"r{i}", [3 + i] * (8 + i), 12, tenant="ab"[i % 2]) for i in range(4)]
    rig.add(*requests)
    return requests


def prompts_of_two_tenants(rig: SchedulerRig) -> list[Request]:
    rig.keep(PREAMBLE, PROMPT, OTHER_PROMPT, UNPINNED)
    requests = [
        make_request(f"r{i}", [*prefix.token_ids, 70 + i], 5, tenant=prefix.tenant or "b")
        for i, prefix in enumerate((PROMPT, PREAMBLE, OTHER_PROMPT, UNPINNED, PROMPT))
    ]
    for request in requests:
        rig.add(request)
        rig.step()
    return requests


def prompts_that_come_and_go(rig: SchedulerRig) -> list[Request]:
    requests = []
    lists = [(PROMPT,), (PREAMBLE, PROMPT), (PREAMBLE, OTHER_PROMPT), (OTHER_PROMPT, UNPINNED), ()]
    for number, prefixes in enumerate(lists):
        rig.keep(*prefixes)
        requests.append(make_request(f"r{number}", [*PROMPT.token_ids, 70], 5, tenant="a"))
        rig.add(requests[-1])
        rig.now_s += 4.0
        rig.step()
        rig.step()
    return requests


def a_tenant_that_is_revoked(rig: SchedulerRig) -> list[Request]:
    rig.keep(PREAMBLE, PROMPT)
    rig.add(make_request("revoked", [*PROMPT.token_ids, 70], 9, tenant="a"))
    requests = [make_request("other", [*PROMPT.token_ids, 70], 9, tenant="b")]
    rig.add(*requests)
    for _ in range(4):
        rig.step()
    rig.revoke("a")
    return requests


SCENARIOS: list[Scenario] = [
    several_answers,
    edits_at_every_step,
    more_than_the_pool_holds,
    prompts_of_two_tenants,
    prompts_that_come_and_go,
    a_tenant_that_is_revoked,
]


def run_failing(scenario: Scenario, rig: SchedulerRig, failing: int) -> bool:
    """Run a scenario to its end; tell whether it made as many allocations as to fail."""
    rig.max_empty_steps = 1
    allocate = FailingOnce(rig.cache.allocator.try_allocate, failing)
    rig.cache.allocator.try_allocate = allocate  # type: ignore[method-assign]

    requests = scenario(rig)
    rig.run()

    for request in requests:
        prompt = request.token_ids[: request.num_prompt_tokens]
        alone = generate_alone(prompt, request.sampling.max_tokens, rig.next_token)
        assert rig.outputs[request.request_id] == alone
    assert rig.cache.allocator.num_used == 0
    news = rig.reports.values()
    assert not [each for each in news if each.state is PrefixState.WARMING]
    return allocate.has_failed


@pytest.mark.parametrize("page_size", [1, 2, 4])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_whichever_allocation_fails_everybody_gets_the_same_tokens(
    scenario: Scenario, page_size: int
) -> None:
    limits = PinLimits(24 // page_size, 24 // page_size)

    for failing in range(1, MAX_ALLOCATIONS):
        rig = SchedulerRig(
            num_pages=64 // page_size,
            page_size=page_size,
            max_num_seqs=4,
            max_num_batched_tokens=9,
            keeping=Keeping(limits),
        )
        if not run_failing(scenario, rig, failing):
            break

    assert 3 < failing < MAX_ALLOCATIONS - 1


@pytest.mark.parametrize("page_size", [1, 2, 4])
def test_a_restore_that_gets_no_pages_becomes_a_computation(page_size: int, tmp_path: Path) -> None:
    def make_rig() -> SchedulerRig:
        limits = PinLimits(40 // page_size, 40 // page_size)
        keeping = Keeping(limits, folder=tmp_path)
        return SchedulerRig(num_pages=80 // page_size, page_size=page_size, keeping=keeping)

    before = make_rig()
    before.keep(PREAMBLE, PROMPT, OTHER_PROMPT)
    before.run()

    for failing in (1, 2, 3):
        rig = make_rig()
        assert run_failing(prompts_of_two_tenants, rig, failing)
        restored = [report.is_restored for report in rig.reports.values()]
        assert restored.count(True) == 2
        assert len(rig.cache.pins.names) == 3
