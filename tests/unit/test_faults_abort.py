"""Faults around clients that leave, reported of others, each as a small scenario done right.

The first line of each docstring names the report. `test_faults_index.py` lists those that are
tested elsewhere. A client that leaves is an abort to the scheduler.
"""

import pytest
from unit.cache_helpers import SchedulerRig, generate_alone, make_request
from unit.tokenizer_helpers import byte_level_definition, make_tokenizer

from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.request import RequestState

PROMPT = list(range(10, 30))

MOMENTS = {
    "queued": 0,
    "in the middle of a chunk": 1,
    "between chunks": 2,
    "at the last chunk": 3,
    "at the first token": 4,
    "decoding": 7,
}
"""Steps that a prompt of 20 tokens under a budget of 6 has taken by then."""


def is_free(rig: SchedulerRig) -> bool:
    rig.scheduler.check_invariants()
    return rig.cache.allocator.num_used == 0 and rig.cache.tree.protected_pages == 0


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_client_that_leaves_at_any_moment_frees_its_pages_at_once(moment: str) -> None:
    """sgl-project/sglang#35255: who left between two chunks was never aborted"""
    rig = SchedulerRig(max_num_batched_tokens=6)
    request = make_request("leaves", PROMPT)
    rig.add(request)
    for _ in range(MOMENTS[moment]):
        rig.step()

    for _ in range(3):
        rig.scheduler.abort([request.request_id])

    assert request.state is RequestState.FINISHED
    assert is_free(rig)
    assert not rig.scheduler.has_work


@pytest.mark.parametrize("others", [0, 3])
def test_a_client_that_leaves_between_its_prefill_and_its_first_decode_is_not_missed(
    others: int,
) -> None:
    """sgl-project/sglang#36876: in that window it was in none of the batches that were searched"""
    rig = SchedulerRig(max_num_batched_tokens=24)
    stay = [make_request(f"stays {i}", [5, i], 6) for i in range(others)]
    request = make_request("leaves", PROMPT)
    rig.add(*stay, request)
    while request.num_output_tokens == 0:
        rig.step()

    rig.scheduler.abort([request.request_id])

    assert request.request_id not in [run.request.request_id for run in rig.step().scheduled]
    rig.run()
    assert is_free(rig)
    assert all(len(rig.outputs[each.request_id]) == 6 for each in stay)


def test_a_long_answer_stops_with_the_step_in_which_its_reader_leaves() -> None:
    """sgl-project/sglang#34894: an answer of 2,000 tokens went on for nobody"""
    rig = SchedulerRig(num_pages=1024)
    rig.add(make_request("long", PROMPT, 2000))
    for _ in range(30):
        rig.step()
    num_tokens = len(rig.outputs["long"])

    rig.scheduler.abort([RequestId("long")])

    assert rig.step().scheduled == []
    assert len(rig.outputs["long"]) == num_tokens == 30
    assert is_free(rig)


@pytest.mark.parametrize("num_steps", range(6))
def test_when_all_leave_while_a_prompt_is_half_computed_every_seat_and_page_is_back(
    num_steps: int,
) -> None:
    """sgl-project/sglang-jax#984: the request of the pending chunk kept its slot"""
    rig = SchedulerRig(max_num_batched_tokens=6, max_num_seqs=3)
    requests = [make_request(f"r{i}", [i, *PROMPT]) for i in range(5)]
    rig.add(*requests)
    for _ in range(num_steps):
        rig.step()

    rig.scheduler.abort([request.request_id for request in requests])

    assert rig.scheduler.running == []
    assert len(rig.scheduler.waiting) == 0
    assert is_free(rig)


def test_after_a_stream_that_was_left_the_next_one_starts_as_soon_as_ever() -> None:
    """pegainfer-project/pegainfer#215: the next request waited for what nobody read any more"""
    rig = SchedulerRig(num_pages=1024, max_num_seqs=1)
    rig.add(make_request("left", PROMPT, 2000))
    rig.step()
    rig.scheduler.abort([RequestId("left")])

    rig.add(make_request("next", [9, *PROMPT], 3))
    rig.step()

    assert len(rig.outputs["next"]) == 1


def test_after_three_crowds_that_vanished_a_single_request_completes() -> None:
    """InternLM/lmdeploy#1619: 100 broken streams, three times, and the service was stuck"""
    rig = SchedulerRig(num_pages=48, max_num_batched_tokens=16)
    for crowd in range(3):
        requests = [
            make_request(f"{crowd}.{i}", [i % 7, *PROMPT[: i % 19]], 30) for i in range(100)
        ]
        rig.add(*requests)
        for _ in range(crowd * 4 + 1):
            rig.step()
        rig.scheduler.abort([request.request_id for request in requests])
        assert is_free(rig)
    last = make_request("last", PROMPT)
    rig.add(last)

    assert rig.run()["last"] == generate_alone(PROMPT, 8, rig.next_token)


def test_streams_that_are_broken_early_leave_the_pool_as_it_was() -> None:
    """InternLM/lmdeploy#1848: 300 early-broken streams, each of which kept a page"""
    rig = SchedulerRig(num_pages=48)
    for number in range(300):
        request = make_request(f"r{number}", [number % 11, *PROMPT[: number % 17]], 50)
        rig.add(request)
        for _ in range(number % 4):
            rig.step()
        rig.scheduler.abort([request.request_id])

    allocator = rig.cache.allocator
    assert is_free(rig)
    assert allocator.num_free + allocator.num_cached == 48


def test_none_of_those_who_leave_the_queue_is_computed() -> None:
    """ggml-org/llama.cpp#13262 #16467: requests of clients long gone were worked off one by one"""
    rig = SchedulerRig(max_num_seqs=1)
    first = make_request("first", PROMPT, 10)
    queued = [make_request(f"queued {i}", [i, *PROMPT]) for i in range(5)]
    rig.add(first, *queued)
    rig.step()

    rig.scheduler.abort([request.request_id for request in queued])
    rig.run()

    assert list(rig.outputs) == ["first"]
    assert [request.num_cached_tokens for request in queued] == [None] * 5


def test_requests_that_are_cancelled_before_their_first_step_leave_no_entry_behind() -> None:
    """vllm-project/vllm#57061: a map of request states grew by each that was cancelled early"""
    rig = SchedulerRig()
    core = EngineCore(rig.scheduler, rig.runner, make_tokenizer(byte_level_definition()))
    prompt, sampling = tuple(PROMPT), SamplingParams(max_tokens=5, seed=0)
    for number in range(1000):
        name = RequestId(f"r{number}")
        core.add(GenerationRequest(name, "m", prompt, sampling, tenant=f"t{number % 3}"))
        core.abort([name])

    assert not core.has_work
    assert core.stats().requests_waiting == 0
    assert [rig.scheduler.requests_of(f"t{tenant}") for tenant in range(3)] == [[]] * 3
    # Every id can be used again, so none of them is known any more.
    core.add(GenerationRequest(RequestId("r0"), "m", prompt, sampling, tenant="t0"))
    rig.run()
    assert len(rig.outputs["r0"]) == 5
