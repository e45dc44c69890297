"""The scheduler under random load: adds, aborts and steps in any order, checked after each.

The fake runner reads every history back through the page tables, so a page that was shared, copied,
remapped or freed wrongly gives another token than the model does alone.
"""

from hypothesis import given, settings
from hypothesis import strategies as st
from unit.cache_helpers import SchedulerRig, generate_alone, hash_model, make_request

from chatserve.engine.request import Request


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    page_size=st.sampled_from([1, 2, 4, 16]),
    num_pages=st.integers(4, 24),
    seats=st.integers(1, 6),
    budget=st.integers(6, 24),
    prefix_cache=st.booleans(),
)
def test_any_mix_of_requests_gives_each_the_tokens_it_would_get_alone(
    data: st.DataObject,
    page_size: int,
    num_pages: int,
    seats: int,
    budget: int,
    prefix_cache: bool,
) -> None:
    model = hash_model(2, eos_every=9)
    rig = SchedulerRig(
        num_pages=num_pages,
        page_size=page_size,
        max_num_seqs=seats,
        max_num_batched_tokens=budget,
        prefix_cache=prefix_cache,
        next_token=model,
    )
    room = num_pages * page_size
    requests: list[Request] = []
    for index in range(data.draw(st.integers(1, 12))):
        prompt = data.draw(st.lists(st.integers(3, 4), min_size=1, max_size=min(room - 2, 30)))
        forks = data.draw(st.booleans())
        if requests and forks:
            earlier = data.draw(st.sampled_from(requests)).token_ids
            prompt = [*earlier[: data.draw(st.integers(0, len(earlier)))], *prompt][: room - 2]
        request = make_request(f"r{index}", prompt, data.draw(st.integers(1, 20)))
        requests.append(request)
        rig.add(request)
        for _ in range(data.draw(st.integers(0, 4))):
            rig.step()
        if data.draw(st.integers(0, 5)) == 0:
            rig.scheduler.abort([data.draw(st.sampled_from(requests)).request_id])
            rig.scheduler.check_invariants()

    rig.run()

    for request in requests:
        prompt = request.token_ids[: request.num_prompt_tokens]
        alone = generate_alone(prompt, request.sampling.max_tokens, model)
        output = rig.outputs.get(request.request_id, [])
        was_cut = request.request_id not in rig.ends or request.num_tokens == room
        assert output == (alone[: len(output)] if was_cut else alone)
    assert rig.cache.allocator.num_used == 0
