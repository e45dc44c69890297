"""Plans against brute force, and what must hold for every plan."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.plan_helpers import TWO_CORES, make_inputs

from chatserve.cache.prefix_cache import PrefixCache
from chatserve.planning.inputs import Given, PlanInputs
from chatserve.planning.limits import Bound
from chatserve.planning.plan import Plan, count_sessions, make_plan

PAGE_SIZES = st.sampled_from([1, 2, 4, 16, 64])
POOLS = st.builds(Given, num_pages=st.integers(2, 10_000))
SPEEDS = st.builds(
    replace,
    st.just(TWO_CORES),
    bandwidth_gb_per_s=st.floats(0.01, 10_000),
    kv_bandwidth_gb_per_s=st.floats(0.01, 10_000),
    throughput_gflops=st.floats(0.1, 10**6),
)


@st.composite
def plan_inputs(draw: st.DrawFn, given: st.SearchStrategy[Given] = POOLS) -> PlanInputs:
    session = draw(st.integers(2, 9000))
    return make_inputs(
        target_itl_ms=draw(st.floats(0.1, 5000)),
        session_tokens=session,
        shared_tokens=draw(st.integers(0, session - 1)),
        given=draw(given),
        page_size=draw(PAGE_SIZES),
        prefix_cache=draw(st.booleans()),
        speed=draw(SPEEDS),
    )


def admitted_sessions(num_pages: int, inputs: PlanInputs, *, shares: bool) -> int:
    """Count by filling a prefix cache with sessions, all held at once."""
    cache = PrefixCache(num_pages, inputs.page_size, enabled=shares)
    workload, count = inputs.workload, 0
    own = workload.session_tokens - workload.shared_tokens
    while True:
        tokens = [*range(workload.shared_tokens), *([-1 - count] * own)]
        admission = cache.try_admit(cache.match_prefix(tokens), len(tokens))
        if admission is None:
            return count
        cache.commit(admission.held, tokens, len(tokens))
        count += 1


@settings(max_examples=200)
@given(
    num_pages=st.integers(1, 60),
    page_size=PAGE_SIZES,
    session=st.integers(2, 80),
    part=st.floats(0, 0.999),
    shares=st.booleans(),
)
def test_sessions_are_as_many_as_a_prefix_cache_admits(
    *, num_pages: int, page_size: int, session: int, part: float, shares: bool
) -> None:
    inputs = make_inputs(
        session_tokens=session, shared_tokens=int(session * part), page_size=page_size
    )

    counted = count_sessions(inputs, num_pages, shares=shares)

    assert counted == admitted_sessions(num_pages, inputs, shares=shares)


@given(plan_inputs())
def test_a_plan_keeps_its_promises(inputs: PlanInputs) -> None:
    plan = make_plan(inputs)

    assert 8 <= plan.max_num_seqs.value <= 256
    assert 64 <= plan.max_num_batched_tokens.value <= 8192
    assert plan.max_num_batched_tokens.value >= plan.max_num_seqs.value + inputs.page_size
    assert 1 <= plan.sessions_without_sharing <= plan.sessions_with_sharing
    assert 0 <= plan.max_pinned_pages <= plan.num_pages // 2
    assert plan.max_model_len <= plan.num_pages * inputs.page_size
    assert plan.max_num_seqs.value in {step.num_seqs for step in plan.steps}


@given(plan_inputs())
def test_a_batch_bound_by_time_keeps_to_the_target(inputs: PlanInputs) -> None:
    plan = make_plan(inputs)

    if plan.max_num_seqs.bound in (Bound.TARGET_ITL, Bound.POOL):
        assert step_ms(plan) <= inputs.workload.target_itl_ms + 0.001


@given(
    plan_inputs(
        st.builds(
            Given,
            num_pages=st.integers(2, 10_000),
            max_num_seqs=st.none() | st.integers(1, 4096),
            max_num_batched_tokens=st.none() | st.integers(4096, 10_000),
        )
        | st.builds(
            Given, num_pages=st.integers(2, 10_000), max_num_batched_tokens=st.integers(1, 100)
        )
    )
)
def test_a_step_can_decode_every_request_whatever_was_given(inputs: PlanInputs) -> None:
    plan = make_plan(inputs)

    assert plan.max_num_batched_tokens.value >= plan.max_num_seqs.value


@given(plan_inputs(), st.integers(368_640 * 4, 2**34), st.integers(0, 2**34))
def test_more_memory_never_means_fewer_pages_or_sessions(
    inputs: PlanInputs, memory: int, more: int
) -> None:
    less = make_plan(replace(inputs, given=Given(kv_memory_bytes=memory)))
    greater = make_plan(replace(inputs, given=Given(kv_memory_bytes=memory + more)))

    assert greater.num_pages >= less.num_pages
    assert greater.max_pinned_pages >= less.max_pinned_pages
    assert greater.sessions_with_sharing >= less.sessions_with_sharing or (
        greater.max_model_len > less.max_model_len
    )


@given(plan_inputs(), st.integers(0, 5000))
def test_more_pages_never_hold_fewer_sessions(inputs: PlanInputs, more: int) -> None:
    used = make_plan(inputs).inputs
    assert inputs.given.num_pages is not None
    few, many = inputs.given.num_pages, inputs.given.num_pages + more

    for shares in (True, False):
        assert count_sessions(used, many, shares=shares) >= count_sessions(used, few, shares=shares)


@given(plan_inputs(), st.floats(1, 100), st.floats(1, 100), st.floats(1, 100))
def test_a_faster_machine_never_runs_fewer_requests_or_smaller_steps(
    inputs: PlanInputs, bandwidth: float, kv_bandwidth: float, throughput: float
) -> None:
    assert inputs.speed is not None
    faster = replace(
        inputs.speed,
        bandwidth_gb_per_s=inputs.speed.bandwidth_gb_per_s * bandwidth,
        kv_bandwidth_gb_per_s=inputs.speed.kv_bandwidth_gb_per_s * kv_bandwidth,
        throughput_gflops=inputs.speed.throughput_gflops * throughput,
    )

    before, after = make_plan(inputs), make_plan(replace(inputs, speed=faster))

    assert after.max_num_seqs.value >= before.max_num_seqs.value
    assert after.max_num_batched_tokens.value >= before.max_num_batched_tokens.value
    assert after.steps[0].step_ms <= before.steps[0].step_ms


@given(plan_inputs(), st.floats(1, 100))
def test_a_more_patient_target_never_runs_fewer_requests(inputs: PlanInputs, more: float) -> None:
    patient = replace(inputs.workload, target_itl_ms=inputs.workload.target_itl_ms * more)

    before, after = make_plan(inputs), make_plan(replace(inputs, workload=patient))

    assert after.max_num_seqs.value >= before.max_num_seqs.value
    assert after.max_num_batched_tokens.value >= before.max_num_batched_tokens.value


@pytest.mark.parametrize("page_size", [1, 16])
def test_sharing_counts_the_partial_page_of_each_session(page_size: int) -> None:
    inputs = make_inputs(session_tokens=40, shared_tokens=24, page_size=page_size)

    assert (
        count_sessions(inputs, 96 // page_size) == {1: (96 - 24) // 16, 16: (6 - 1) // 2}[page_size]
    )


def step_ms(plan: Plan) -> float:
    return next(s.step_ms for s in plan.steps if s.num_seqs == plan.max_num_seqs.value)
