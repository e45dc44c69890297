"""Plans: exact figures for the default model, what decides each limit, and what is warned of."""

from dataclasses import replace

import pytest
from unit.plan_helpers import BIG_GPU, GIB, SMOLLM2_135M, TWO_CORES, make_inputs

from chatserve.errors import ConfigError
from chatserve.planning.inputs import Given
from chatserve.planning.limits import Bound
from chatserve.planning.plan import check_sizes, make_plan
from chatserve.planning.step_time import ModelCost, StepTimes


def test_memory_of_the_default_model_is_counted_to_the_byte() -> None:
    plan = make_plan(make_inputs())

    assert plan.kv_bytes_per_token == 2 * 30 * 3 * 64 * 2 == 23_040
    assert plan.kv_bytes_per_page == 368_640
    assert plan.num_pages == GIB // 368_640 == 2912
    assert plan.inputs.cost.weight_bytes == 134_515_008 * 2


def test_sessions_are_counted_in_whole_pages_with_and_without_sharing() -> None:
    plan = make_plan(make_inputs(session_tokens=1000, shared_tokens=500))

    assert plan.sessions_without_sharing == 2912 // 63
    assert plan.sessions_with_sharing == (2912 - 31) // (63 - 31)


def test_a_decode_step_reads_weights_once_and_kv_of_each_request() -> None:
    times = StepTimes(ModelCost.of(SMOLLM2_135M, "bfloat16"), TWO_CORES, context=1000)

    weights_ms, kv_ms = 269_030_016 / 10e9 * 1e3, 1000 * 23_040 / 10e9 * 1e3
    assert times.read_ms(4) == pytest.approx(weights_ms + 4 * kv_ms)
    flops = 2 * (30 * 3_538_944 + 49_152 * 576) + 1000 * 4 * 30 * 9 * 64
    assert times.compute_ms(4) == pytest.approx(4 * flops / 400e9 * 1e3)
    assert times.decode_ms(4) == pytest.approx(times.read_ms(4) + times.compute_ms(4))


def test_largest_batch_within_a_time_is_the_last_one_that_keeps_to_it() -> None:
    times = StepTimes(ModelCost.of(SMOLLM2_135M, "bfloat16"), TWO_CORES, context=768)

    num_seqs = times.max_seqs_within(100.0)

    assert times.decode_ms(num_seqs) <= 100.0 < times.decode_ms(num_seqs + 1)
    assert times.max_seqs_within(times.read_ms(0) / 2) == 0


def test_an_embedding_that_is_no_output_head_is_stored_but_not_read() -> None:
    tied = ModelCost.of(SMOLLM2_135M, "float32")

    untied = ModelCost.of(replace(SMOLLM2_135M, tie_word_embeddings=False), "float32")

    assert untied.step_read_bytes == tied.step_read_bytes
    assert untied.weight_bytes == tied.weight_bytes + 49_152 * 576 * 4


def test_target_itl_decides_where_the_pool_has_room() -> None:
    plan = make_plan(make_inputs())

    limit = plan.max_num_seqs
    assert (limit.value, limit.bound) == (28, Bound.TARGET_ITL)
    assert limit.reason == (
        "28 fit a step within 100 ms, the wanted time between tokens; "
        "the pool holds 90 typical sessions."
    )


def test_pool_decides_where_it_is_small() -> None:
    plan = make_plan(make_inputs(given=Given(num_pages=512)))

    assert plan.max_num_seqs.value == plan.sessions_with_sharing == (512 - 32) // 32
    assert plan.max_num_seqs.bound is Bound.POOL


def test_without_prefix_cache_the_pool_is_counted_without_sharing() -> None:
    plan = make_plan(make_inputs(given=Given(num_pages=640), prefix_cache=False))

    assert plan.max_num_seqs.value == plan.sessions_without_sharing == 10


def test_recommended_requests_stay_within_their_range() -> None:
    least = make_plan(make_inputs(given=Given(num_pages=64)))
    most = make_plan(make_inputs(given=Given(num_pages=10**6), speed=BIG_GPU))

    assert (least.max_num_seqs.value, least.max_num_seqs.bound) == (8, Bound.MINIMUM)
    assert (most.max_num_seqs.value, most.max_num_seqs.bound) == (256, Bound.MAXIMUM)


def test_token_budget_is_every_decode_and_a_chunk_of_twice_the_target() -> None:
    plan = make_plan(make_inputs())

    token_ms = (2 * 30 * 3_538_944 + 768 * 69_120) / 400e9 * 1e3
    chunk = int(200 / token_ms)
    limit = plan.max_num_batched_tokens
    assert limit.value == (28 + chunk) // 16 * 16 == 320
    assert limit.bound is Bound.TARGET_ITL


def test_token_budget_stays_within_its_range() -> None:
    slow = replace(TWO_CORES, throughput_gflops=1.0)

    least = make_plan(make_inputs(speed=slow)).max_num_batched_tokens
    most = make_plan(make_inputs(speed=BIG_GPU)).max_num_batched_tokens

    assert (least.value, least.bound) == (64, Bound.MINIMUM)
    assert (most.value, most.bound) == (8192, Bound.MAXIMUM)


def test_given_limits_are_kept_and_need_no_speed() -> None:
    given = Given(num_pages=512, max_num_seqs=100, max_num_batched_tokens=300)

    plan = make_plan(make_inputs(given=given, speed=None))

    assert (plan.max_num_seqs.value, plan.max_num_seqs.bound) == (100, Bound.GIVEN)
    budget = plan.max_num_batched_tokens
    assert (budget.value, budget.bound) == (300, Bound.GIVEN)
    assert plan.steps == ()


def test_a_given_limit_keeps_the_recommended_other_one_possible() -> None:
    few_tokens = make_plan(make_inputs(given=Given(num_pages=512, max_num_batched_tokens=5)))
    many_requests = make_plan(
        make_inputs(given=Given(num_pages=512, max_num_seqs=4096), target_itl_ms=1.0)
    )

    assert few_tokens.max_num_seqs.value == 5
    assert few_tokens.max_num_seqs.bound is Bound.TOKEN_BUDGET
    assert many_requests.max_num_batched_tokens.value == 4096 + 16


def test_share_of_memory_holds_no_more_than_all_requests_could_fill() -> None:
    roomy = make_inputs(given=Given(max_num_seqs=4), pool_share_bytes=1000 * GIB)
    tight = make_inputs(given=Given(max_num_seqs=4), pool_share_bytes=GIB)

    assert make_plan(roomy).num_pages == 4 * 512
    assert make_plan(tight).num_pages == 2048 < GIB // 368_640


def test_pins_leave_room_for_one_request_of_full_context_and_half_the_pool() -> None:
    large = make_plan(make_inputs(given=Given(num_pages=2000)))
    small = make_plan(make_inputs(given=Given(num_pages=700)))
    tiny = make_plan(make_inputs(given=Given(num_pages=100)))

    assert large.max_pinned_pages == 1000
    assert small.max_pinned_pages == 700 - 512
    assert tiny.max_pinned_pages == 25


def test_nothing_is_pinned_or_shared_without_a_prefix_cache() -> None:
    plan = make_plan(make_inputs(given=Given(num_pages=640), prefix_cache=False))

    assert plan.max_pinned_pages == 0
    assert plan.sessions_with_sharing == plan.sessions_without_sharing
    assert "pinned" not in " ".join(plan.warnings)


def test_one_request_at_a_time_still_leaves_room_for_its_prefixes() -> None:
    plan = make_plan(make_inputs(given=Given(max_num_seqs=1), pool_share_bytes=1000 * GIB))

    assert (plan.max_model_len, plan.num_pages, plan.max_pinned_pages) == (8192, 1024, 512)


def test_steps_are_powers_of_two_up_to_the_limit_and_the_limit_itself() -> None:
    plan = make_plan(make_inputs())

    assert [step.num_seqs for step in plan.steps] == [1, 2, 4, 8, 16, 28, 32]
    assert all(step.tokens_per_s > 0 for step in plan.steps)


@pytest.mark.parametrize(("num_pages", "context"), [(40, 480), (512, 6144), (682, 8192)])
def test_context_that_is_not_given_leaves_a_quarter_of_the_pool(
    num_pages: int, context: int
) -> None:
    plan = make_plan(make_inputs(given=Given(num_pages=num_pages)))

    assert plan.max_model_len == context
    assert plan.max_pinned_pages == num_pages // 4


def test_context_that_is_cut_is_warned_of_with_what_to_change() -> None:
    plan = make_plan(make_inputs(given=Given(num_pages=40)))

    assert plan.warnings[0] == (
        "a context of 8,192 tokens takes more than three quarters of the pool: requests are "
        "limited to 480 tokens, so that a quarter can be pinned; raise --num-pages, or give "
        "--max-model-len, up to 640."
    )
    assert "sessions of 1,024 tokens are longer than the context: 480" in plan.warnings[1]


def test_a_given_context_may_fill_the_pool_and_then_nothing_can_be_pinned() -> None:
    given = Given(kv_memory_bytes=40 * 368_640, max_model_len=8192)

    plan = make_plan(make_inputs(given=given))

    assert (plan.max_model_len, plan.max_pinned_pages) == (640, 0)
    assert plan.warnings[0] == (
        "a context of 8,192 tokens does not fit the pool: requests are limited to 640 tokens; "
        "raise --kv-memory."
    )
    assert (
        "nothing can be pinned: one request may fill the pool; lower --max-model-len or raise "
        "--kv-memory." in plan.warnings
    )


def test_what_is_shared_is_half_of_the_session_that_fits_the_context() -> None:
    plan = make_plan(make_inputs(given=Given(num_pages=40)))

    assert plan.inputs.workload.session_tokens == 480
    assert plan.inputs.workload.shared_tokens == 240


def test_given_shared_tokens_are_kept_or_cut_with_a_warning() -> None:
    kept = make_plan(make_inputs(shared_tokens=400, given=Given(num_pages=40)))
    cut = make_plan(make_inputs(shared_tokens=700, given=Given(num_pages=40)))

    assert kept.inputs.workload.shared_tokens == 400
    assert "--shared-tokens" not in " ".join(kept.warnings)
    assert cut.inputs.workload.shared_tokens == 479
    assert "--shared-tokens 700 leaves nothing of a session of 480 tokens" in cut.warnings[2]


@pytest.mark.parametrize(
    ("target_itl_ms", "num_pages", "reason"),
    [
        (29.0, 512, "the pool holds 15 typical sessions; no request fits a step"),
        (30.0, 512, "the pool holds 15 typical sessions; 1 fits a step within 30 ms"),
        (100.0, 63, "the pool holds 1 typical session; "),
    ],
)
def test_reasons_count_in_singular_and_plural(
    target_itl_ms: float, num_pages: int, reason: str
) -> None:
    given = Given(num_pages=num_pages, max_model_len=num_pages * 16)

    plan = make_plan(make_inputs(target_itl_ms=target_itl_ms, given=given))

    assert plan.max_num_seqs.reason.startswith(reason)


def test_a_step_without_room_for_a_prefill_says_so() -> None:
    slow = replace(TWO_CORES, throughput_gflops=1.0)

    budget = make_plan(make_inputs(speed=slow)).max_num_batched_tokens

    assert budget.reason.startswith("no prefill fits the target, but every request's decode")


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"target_itl_ms": 20.0}, "a step of one request is predicted to take 29."),
        (
            {"given": Given(num_pages=6000, max_num_seqs=64)},
            "when 64 run at once; lower --max-num-seqs or raise --target-itl.",
        ),
        (
            {"given": Given(num_pages=6000, max_num_batched_tokens=4096)},
            "while prompts are read; lower --max-num-batched-tokens or raise --target-itl.",
        ),
        (
            {"given": Given(num_pages=700, max_num_seqs=25)},
            "the pool holds 20 typical sessions, fewer than the 25 that may run",
        ),
    ],
)
def test_what_will_disappoint_is_warned_of(changes: dict[str, object], warning: str) -> None:
    plan = make_plan(make_inputs(**changes))  # type: ignore[arg-type]

    assert len(plan.warnings) == 1
    assert warning in plan.warnings[0]


def test_a_good_plan_has_no_warnings() -> None:
    assert make_plan(make_inputs()).warnings == ()


def test_context_beyond_the_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="--max-model-len 9000: the model's context is 8192"):
        make_plan(make_inputs(given=Given(max_model_len=9000)))


def test_memory_below_one_page_is_refused_with_both_sizes() -> None:
    with pytest.raises(ConfigError, match="one page needs 368,640 bytes, the pool may take 1,000"):
        make_plan(make_inputs(given=Given(kv_memory_bytes=1000)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Given(kv_memory_bytes=5000), "no KV page fits"),
        (Given(kv_memory_bytes=2**30, max_model_len=10**6), "the model's context is"),
    ],
)
def test_sizes_that_cannot_work_are_refused_before_weights_and_speeds_are_known(
    given: Given, message: str
) -> None:
    inputs = replace(make_inputs(given=given), pool_share_bytes=0, speed=None)

    with pytest.raises(ConfigError, match=message):
        check_sizes(inputs)
