"""Faults of schedulers that others reported, each as a small scenario with the right behaviour.

The first line of each docstring names the report. `test_faults_index.py` lists those that are
tested elsewhere.
"""

import pytest
from unit.cache_helpers import SchedulerRig, generate_alone, make_request
from unit.tokenizer_helpers import byte_level_definition, make_tokenizer

from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.request import Request


def expected(rig: SchedulerRig, request: Request) -> list[int]:
    prompt = request.token_ids[: request.num_prompt_tokens]
    return generate_alone(prompt, request.sampling.max_tokens, rig.next_token)


def make_core(rig: SchedulerRig) -> EngineCore:
    return EngineCore(rig.scheduler, rig.runner, make_tokenizer(byte_level_definition()))


def generation(name: str, num_tokens: int, max_tokens: int = 5) -> GenerationRequest:
    prompt = tuple(range(10, 10 + num_tokens))
    return GenerationRequest(RequestId(name), "m", prompt, SamplingParams(max_tokens, seed=0))


def test_a_prompt_that_can_never_fit_is_refused_and_the_next_one_is_served() -> None:
    """vllm-project/vllm#39734: a prompt over the pool waited for ever, and all others behind it"""
    rig = SchedulerRig(num_pages=8, page_size=4)
    core = make_core(rig)

    refusal = core.add(generation("big", 200))
    assert core.add(generation("small", 9)) is None

    assert refusal is not None
    assert "200 tokens" in str(refusal.error_message)
    assert "32 tokens" in str(refusal.error_message)
    rig.run()
    assert len(rig.outputs["small"]) == 5


def test_an_engine_that_gets_nowhere_says_so_instead_of_turning_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """vllm-project/vllm#45414: nothing ran, something waited, and no step did anything"""
    rig = SchedulerRig()
    core = make_core(rig)
    monkeypatch.setattr(rig.cache.allocator, "try_allocate", lambda count: None)
    core.add(generation("stuck", 9))

    def turn() -> None:
        core.begin_step()
        core.finish_step()

    turn()
    turn()
    with pytest.raises(AssertionError, match="3 steps computed nothing although requests wait"):
        turn()


@pytest.mark.parametrize("num_pages", range(8, 20))
def test_with_a_full_pool_of_decodes_no_more_step_back_than_pages_are_missing(
    num_pages: int,
) -> None:
    """vllm-project/vllm-ascend#16315: pages about to be freed were not counted, all stepped back"""
    rig = SchedulerRig(num_pages=num_pages, page_size=2)
    requests = [make_request(f"r{i}", [3 + i], 2 * num_pages - 1) for i in range(6)]
    rig.add(*requests)

    while rig.scheduler.has_work:
        running = list(rig.scheduler.running)
        growing = [r for r in running if r.held and r.num_tokens > 2 * len(r.held.page_ids)]
        missing = len(growing) - rig.cache.num_available_pages
        assert len(rig.step().preempted) <= max(0, missing)

    assert all(rig.outputs[request.request_id] == expected(rig, request) for request in requests)


def test_when_all_are_aborted_before_a_step_the_step_is_empty_and_legal() -> None:
    """vllm-project/vllm#11562: a step without requests crashed the engine"""
    rig = SchedulerRig(max_num_batched_tokens=6)
    core = make_core(rig)
    names = [RequestId(f"r{i}") for i in range(3)]
    for name in names:
        core.add(generation(name, 9))
    core.begin_step()
    core.finish_step()

    core.abort(names)
    core.begin_step()

    assert core.finish_step() == []
    assert not core.has_work
    assert rig.cache.allocator.num_used == 0


def test_a_cache_full_of_finished_requests_makes_room_for_the_next() -> None:
    """sgl-project/sglang#6778: pages that only the cache held were not evicted for a request"""
    rig = SchedulerRig(num_pages=16, page_size=4)
    while rig.cache.allocator.num_free:
        number = len(rig.outputs)
        rig.add(make_request(f"r{number}", [3 + number] * 7, 2))
        rig.run()
    last = make_request("last", list(range(100, 140)), 8)
    rig.add(last)

    rig.run()

    assert rig.outputs["last"] == expected(rig, last)


@pytest.mark.parametrize("over", [0, 1])
def test_a_prompt_that_fills_the_context_is_refused_with_the_sizes(over: int) -> None:
    """ggml-org/llama.cpp#3817: a prompt over the context was cut or crashed"""
    core = make_core(SchedulerRig(num_pages=8, page_size=4))

    refusal = core.add(generation("full", 32 + over))

    assert refusal is not None
    assert f"{32 + over} tokens" in str(refusal.error_message)
    assert core.add(generation("fits", 31)) is None


def test_a_model_that_never_ends_is_ended_by_the_context() -> None:
    """ggml-org/llama.cpp#6638: without a limit and without an end token it went on for ever"""
    rig = SchedulerRig(num_pages=4, page_size=4)
    rig.add(make_request("endless", [5] * 10, max_tokens=10**9))

    rig.run()

    assert len(rig.outputs["endless"]) == 6
    assert rig.ends["endless"] == "length"


def test_a_cold_request_gets_its_turn_under_a_full_load_of_hot_ones() -> None:
    """sgl-project/sglang#31954 #31723 #33210: whoever shared no prefix was starved"""
    rig = SchedulerRig(num_pages=64, max_num_seqs=2, max_num_batched_tokens=32)
    hot = list(range(1000, 1012))
    cold = make_request("cold", list(range(2000, 2064)), 4)
    rig.add(make_request("warm", hot, 1))
    rig.run()
    rig.add(cold)

    for number in range(12):
        rig.add(*(make_request(f"hot {number}.{i}", [*hot, i], 2) for i in range(2)))
        rig.step()

    assert cold.num_cached_tokens == 0
    rig.run()
    assert rig.outputs["cold"] == expected(rig, cold)
