"""Faults of prefix caches that others reported, each as a small scenario with the right behaviour.

The first line of each docstring names the report. `test_faults_index.py` lists those that are
tested elsewhere.
"""

from collections.abc import Sequence

import pytest
from unit.cache_helpers import (
    SchedulerRig,
    generate_alone,
    hold,
    letters,
    make_request,
    num_found,
    serve,
)

from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.radix_check import check_tree

PROMPT = list(range(10, 30))


def answers(rig: SchedulerRig, *prompts: Sequence[int], together: bool = True) -> list[list[int]]:
    """Return the answers to prompts, sent at once or one after the other."""
    requests = [
        make_request(f"{len(rig.ends)}.{number}", prompt) for number, prompt in enumerate(prompts)
    ]
    for request in requests:
        rig.add(request)
        if not together:
            rig.run()
    rig.run()
    assert rig.cache.allocator.num_used == 0
    return [rig.outputs[request.request_id] for request in requests]


def alone(prompt: Sequence[int]) -> list[int]:
    return generate_alone(prompt, 8, SchedulerRig().next_token)


# ── The same prompt again ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("prefix_cache", [True, False])
def test_the_same_prompt_three_times_gives_the_answer_of_the_cold_run(
    together: bool, prefix_cache: bool
) -> None:
    """vllm-project/vllm#7845: a batch of equal prompts answered otherwise than one after another"""
    rig = SchedulerRig(prefix_cache=prefix_cache)

    assert answers(rig, *[PROMPT] * 3, together=together) == [alone(PROMPT)] * 3


def test_a_prompt_that_is_repeated_gets_the_first_answer_every_time() -> None:
    """vllm-project/vllm#54490: with the cache on, repetitions differed from the first run"""
    rig = SchedulerRig(num_pages=10)

    repeated = [answers(rig, PROMPT, PROMPT[:9])[0] for _ in range(20)]

    assert repeated == [alone(PROMPT)] * 20


def test_a_prompt_that_goes_on_from_an_earlier_one_counts_as_hit() -> None:
    """vllm-project/vllm#51198: the cache said to be on never hit"""
    rig = SchedulerRig()
    answers(rig, PROMPT)

    answers(rig, [*PROMPT, 99, 98])

    assert rig.scheduler.num_hit_tokens == len(PROMPT)
    assert rig.scheduler.num_query_tokens == 2 * len(PROMPT) + 2


@pytest.mark.parametrize("page_size", [1, 2, 4, 16])
@pytest.mark.parametrize("num_pages", [1, 2, 3])
@pytest.mark.parametrize("extra", [0, 1])
def test_of_a_prompt_of_whole_pages_that_is_cached_one_token_is_computed(
    page_size: int, num_pages: int, extra: int
) -> None:
    """vllm-project/vllm#53706: a prompt of exactly k pages, all of them cached"""
    rig = SchedulerRig(page_size=page_size)
    prompt = list(range(10, 10 + num_pages * page_size + extra))
    first = answers(rig, prompt)

    again = make_request("again", prompt)
    rig.add(again)
    (run,) = rig.step().scheduled
    rig.run()

    assert (run.start, len(run.token_ids)) == (len(prompt) - 1, 1)
    assert rig.outputs["again"] == first[0]


def test_a_prompt_as_long_as_some_pages_is_computed_again_by_one_token_only() -> None:
    """GeeeekExplorer/nano-vllm#144: an identical prompt of k pages left no token to compute"""
    rig = SchedulerRig(page_size=4)

    assert answers(rig, PROMPT[:8], PROMPT[:8], together=False) == [alone(PROMPT[:8])] * 2
    assert rig.scheduler.num_hit_tokens == 7


def test_the_whole_of_a_cached_prompt_is_found() -> None:
    """ggml-org/llama.cpp#28139: an exact match in the cache was not taken by an empty slot"""
    cache = PrefixCache(16, 4)
    serve(cache, PROMPT)
    serve(cache, list(range(60, 70)))

    assert num_found(cache, PROMPT) == len(PROMPT)


# ── Exact tokens, whatever their hash ────────────────────────────────────────────────────────


def test_prompts_whose_tokens_have_equal_hashes_share_nothing() -> None:
    """vllm-project/vllm#12621: prompts could be crafted to collide under the cache's hash"""
    modulus = 2**61 - 1  # Python's integers are hashed modulo this
    collided = [token_id + modulus for token_id in PROMPT]
    assert hash(tuple(collided)) == hash(tuple(PROMPT))
    cache = PrefixCache(16, 4)

    serve(cache, PROMPT)

    assert num_found(cache, collided) == 0
    assert num_found(cache, PROMPT) == len(PROMPT)


def test_with_a_hash_that_is_always_the_same_no_wrong_page_is_found() -> None:
    """vllm-project/vllm#54727: a hash was taken for the tokens"""

    class SameHash(int):
        def __hash__(self) -> int:
            return 7

    cache = PrefixCache(32, 4)
    prompts = [[SameHash(start + i) for i in range(10)] for start in range(0, 30, 10)]
    for prompt in prompts:
        serve(cache, list(prompt))

    assert [num_found(cache, list(prompt)) for prompt in prompts] == [10] * 3
    assert num_found(cache, [SameHash(token) for token in (0, 1, 2, 13, 14)]) == 3


# ── Whose ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asking", "prefix_cache", "expected"),
    [("a", True, 20), ("b", True, 0), ("default", True, 0), ("a", False, 0)],
)
def test_hits_follow_the_tenant_that_was_authenticated_and_nothing_else(
    asking: str, prefix_cache: bool, expected: int
) -> None:
    """vllm-project/vllm#16016 #17045 #39082 #53347: same salt, other salt, no salt, no cache"""
    rig = SchedulerRig(prefix_cache=prefix_cache)
    rig.add(make_request("first", PROMPT, tenant="a"))
    rig.run()

    probe = make_request("probe", [*PROMPT, 99], tenant=asking)
    rig.add(probe)
    rig.run()

    assert probe.num_cached_tokens == expected


def test_conversations_of_two_tenants_side_by_side_keep_their_own_tokens() -> None:
    """ggml-org/llama.cpp#27148: restored states got mixed up between conversations"""
    rig = SchedulerRig(num_pages=24, max_num_seqs=2)
    talks = {name: [tenant, *PROMPT[:6]] for name, tenant in (("A", 3), ("B", 4), ("C", 3))}
    for turn in range(5):
        requests = {
            name: make_request(f"{name}{turn}", talk, 4, tenant=str(talk[0]))
            for name, talk in talks.items()
        }
        rig.add(*requests.values())
        rig.run()
        for name, request in requests.items():
            output = rig.outputs[request.request_id]
            assert output == generate_alone(talks[name], 4, rig.next_token)
            talks[name] = [*talks[name], *output, 50 + turn]


# ── Inside a page ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rest", range(1, 16))
def test_what_two_prompts_share_of_a_page_is_copied_and_the_page_is_never_written(
    rest: int,
) -> None:
    """sgl-project/sglang#35635: of a page that is shared in part, nothing was used"""
    rig = SchedulerRig(page_size=16)
    long = list(range(100, 148))
    answers(rig, long)
    branch = make_request("branch", [*long[: 32 + rest], 7, 8])
    rig.add(branch)

    (copy,) = rig.step().page_copies

    assert branch.num_cached_tokens == 32 + rest
    assert copy.num_tokens == rest
    rig.run()
    assert answers(rig, long) == [alone(long)]


def test_after_prompts_that_share_part_of_a_page_every_page_is_accounted_for() -> None:
    """sgl-project/sglang#35270: a page shared in part was counted twice"""
    rig = SchedulerRig(page_size=4)

    answers(rig, PROMPT[:10], [*PROMPT[:9], 70, 71], [*PROMPT[:5], 72])

    tree, allocator = rig.cache.tree, rig.cache.allocator
    assert tree.protected_pages == 0
    assert allocator.num_free + tree.evictable_pages == allocator.num_pages


@pytest.mark.parametrize("length", range(1, 16))
def test_a_prompt_shorter_than_a_page_finds_nothing_and_changes_nothing(length: int) -> None:
    """sgl-project/sglang#10637: matching less than a page moved counters"""
    cache = PrefixCache(8, 16)
    before = (cache.tree.num_nodes, cache.tree.evictable_pages, cache.tree.protected_pages)

    match = cache.match_prefix(PROMPT[:length])

    assert (match.pages, match.partial_tokens, match.node) == ((), 0, cache.tree.root)
    assert (cache.tree.num_nodes, cache.tree.evictable_pages, cache.tree.protected_pages) == before


@pytest.mark.parametrize("cut", range(1, 12))
def test_no_node_is_ever_left_without_tokens(cut: int) -> None:
    """sgl-project/sglang#28692: a match of less than a page split off a node with an empty key"""
    cache = PrefixCache(12, 4)
    serve(cache, PROMPT[:12])

    held = hold(cache, [*PROMPT[:cut], 90])
    cache.tree.evict(2)

    assert all(node.key for node in cache.tree.nodes())
    check_tree(cache.tree)
    assert held.page_ids


def test_locks_on_a_prefix_that_ends_inside_an_edge_all_come_back() -> None:
    """bytedance-iaas/sglang#508: a split under a lock left locks behind for ever"""
    cache = PrefixCache(32, 2)
    serve(cache, letters("aabbccdd"))
    holders = [hold(cache, letters(text)) for text in ("aabbX", "aabbccY", "aabbccddZZ", "aaQ")]

    for held in holders:
        cache.release(held)

    assert [node.lock_ref for node in cache.tree.nodes()] == [0] * cache.tree.num_nodes
    assert cache.tree.protected_pages == 0


# ── Two at once, and too few pages ───────────────────────────────────────────────────────────


def test_pages_computed_twice_are_replaced_in_the_request_before_they_are_freed() -> None:
    """sgl-project/mini-sglang#142: duplicates were freed while the page table still named them"""
    cache, prompt = PrefixCache(32, 4), list(range(10, 50))
    admitted = [cache.try_admit(cache.match_prefix(prompt), len(prompt)) for _ in range(2)]
    first, second = (admission.held for admission in admitted if admission is not None)

    for held in (first, second):
        cache.commit(held, prompt, len(prompt))
        cache.check_invariants([first, second])

    assert first.page_ids == second.page_ids
    for number in range(20):
        prompt.append(60 + number)
        for held in (first, second):
            assert cache.try_grow(held, len(prompt))
            cache.assert_writable(held, len(prompt) - 1, len(prompt))
            cache.commit(held, prompt, len(prompt))
            cache.check_invariants([first, second])
    assert cache.allocator.num_free == 32 - 15


def test_a_match_whose_admission_fails_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """sgl-project/sglang#16067: a hit whose allocation failed kept its locks and slots"""
    cache = PrefixCache(16, 4)
    serve(cache, PROMPT)
    monkeypatch.setattr(cache.allocator, "try_allocate", lambda count: None)

    assert cache.try_admit(cache.match_prefix([*PROMPT, 1, 2]), len(PROMPT) + 2) is None

    cache.check_invariants([])
    assert cache.allocator.num_used == cache.tree.protected_pages == 0


def test_after_a_short_prompt_in_tiny_chunks_and_a_long_answer_nothing_is_held() -> None:
    """sgl-project/sglang-jax#982: two owners freed the same page; the idle check failed"""
    rig = SchedulerRig(page_size=4, max_num_batched_tokens=2)
    rig.add(make_request("only", PROMPT[:7], 200))

    rig.run()

    assert len(rig.outputs["only"]) == 200
    assert rig.cache.allocator.num_used == 0
    assert rig.cache.tree.evictable_pages == rig.cache.allocator.num_cached


@pytest.mark.parametrize("num_pages", range(4, 9))
def test_a_preempted_request_that_hits_its_own_pages_stays_inside_the_pool(num_pages: int) -> None:
    """GeeeekExplorer/nano-vllm#211 #233: the budget was made before the match, and overrun"""
    rig = SchedulerRig(num_pages=num_pages, page_size=4, max_num_batched_tokens=5)
    requests = [make_request(f"r{i}", [3 + i] * 6, num_pages * 4 - 6) for i in range(3)]
    rig.add(*requests)

    while rig.scheduler.has_work:
        output = rig.step()
        assert output.num_tokens <= 5

    for request in requests:
        prompt = request.token_ids[: request.num_prompt_tokens]
        expected = generate_alone(prompt, request.sampling.max_tokens, rig.next_token)
        assert rig.outputs[request.request_id] == expected


# ── On and off ───────────────────────────────────────────────────────────────────────────────


def test_a_long_system_prompt_changes_no_answer_by_being_cached() -> None:
    """InternLM/lmdeploy#1719: answers differed with prefix caching and a long system prompt"""
    system = list(range(200, 300))
    prompts = [[*system, 5, number] for number in range(3, 9)]

    on, off = (
        answers(SchedulerRig(num_pages=128, prefix_cache=enabled), *prompts, together=False)
        for enabled in (True, False)
    )

    assert on == off == [alone(prompt) for prompt in prompts]


def test_two_hundred_prompts_in_a_row_are_answered_as_without_a_cache() -> None:
    """sgl-project/sglang#4175: greedy answers to a series of prompts depended on the cache"""
    prompts = [[*PROMPT[: number % 17], number % 5, number % 3] for number in range(200)]

    on, off = (
        answers(SchedulerRig(num_pages=24, prefix_cache=enabled), *prompts, together=False)
        for enabled in (True, False)
    )

    assert on == off


def test_a_chat_whose_history_was_cut_goes_on_from_what_is_left() -> None:
    """ggml-org/llama.cpp#23206: a history that was shortened on the fourth turn crashed"""
    rig = SchedulerRig(num_pages=128)
    history = list(PROMPT[:5])
    for turn in range(5):
        if turn == 3:
            history = [*history[:5], *history[-6:]]
        request = make_request(f"turn {turn}", history, 6)
        rig.add(request)
        rig.run()
        assert rig.outputs[request.request_id] == generate_alone(history, 6, rig.next_token)
        assert (request.num_cached_tokens or 0) >= (5 if turn else 0)
        history = [*request.token_ids, 60 + turn]


def test_prompts_that_hardly_differ_are_answered_in_a_batch_as_one_by_one() -> None:
    """vllm-project/vllm#27034: near-identical prompts changed their answers with the batch"""
    prompts = [[*PROMPT[:13], number, *PROMPT[14:]] for number in range(5)]

    together, one_by_one = (
        answers(SchedulerRig(), *prompts, together=each) for each in (True, False)
    )

    assert together == one_by_one == [alone(prompt) for prompt in prompts]
