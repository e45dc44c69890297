"""The snapshot is the truth of allocator and tree, in every state that a run goes through."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.cache_helpers import hash_model
from unit.observed_rig import PREAMBLE, ObservedRig
from unit.tokenizer_helpers import byte_level_definition, make_tokenizer

from chatserve.cache.node_use import MAX_USERS
from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.scope import Owner
from chatserve.cache.scope_map import CacheScope
from chatserve.cache.tree_state import NodeNames, tree_state
from chatserve.cache_snapshot import CacheSnapshot, page_state
from chatserve.engine.api import GenerationRequest, KeptPrefix, RequestId, SamplingParams
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.fake import FakeRunner
from chatserve.engine.scheduler import Scheduler, SchedulerConfig

KEPT = KeptPrefix("", "preamble", PREAMBLE)

PROMPTS = st.lists(
    st.tuples(
        st.sampled_from(["acme", "zeta"]),
        st.lists(st.integers(0, 2), min_size=1, max_size=14),
        st.integers(1, 6),
        st.integers(0, 12),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(PROMPTS)
def test_pages_are_counted_as_the_engine_counts_them(
    prompts: list[tuple[str, list[int], int, int]],
) -> None:
    core = small_engine()
    waiting = {number: each for number, each in enumerate(prompts)}

    for step in range(40):
        for number in [n for n, each in waiting.items() if each[3] == step]:
            tenant, prompt, max_tokens, _ = waiting.pop(number)
            core.add(generation(f"r{number}", prompt, tenant, max_tokens))
        core.begin_step()
        core.finish_step()
        assert_counts_agree(core)


def small_engine() -> EngineCore:
    """Return an engine with few pages, so that it evicts and preempts."""
    scheduler = Scheduler(SchedulerConfig(3, 16, 80, frozenset()), PrefixCache(20, 4))
    tokenizer = make_tokenizer(byte_level_definition())
    return EngineCore(scheduler, FakeRunner(20, 4, hash_model()), tokenizer)


def generation(name: str, prompt: list[int], tenant: str, max_tokens: int) -> GenerationRequest:
    sampling = SamplingParams(max_tokens=max_tokens, seed=0)
    return GenerationRequest(RequestId(name), "m", tuple(prompt), sampling, tenant)


def assert_counts_agree(core: EngineCore) -> None:
    snapshot, stats = core.cache_snapshot(), core.stats()
    states = snapshot.pages
    assert len(states) == stats.num_pages
    assert states.count(".") == stats.pages_free
    assert states.count("c") + states.count("p") == stats.pages_cached
    shared = [state for state in states if state.isdigit()]
    assert states.count("u") + len(shared) == stats.pages_used
    assert len(shared) == stats.pages_shared
    assert len(snapshot.requests) == stats.requests_running
    in_tree = [page for node in snapshot.nodes for page in node.pages]
    assert len(in_tree) == len(set(in_tree))
    assert {page for page, state in enumerate(states) if state == "c"} <= set(in_tree)


def test_states_are_those_of_the_allocator() -> None:
    rig = ObservedRig()
    rig.keep(KEPT)
    for name in ("a", "b"):
        rig.ask(name, [*PREAMBLE, 1, 2, 3, 4, 5], "acme", max_tokens=3)
    rig.step()

    allocator = rig.cache.allocator
    for page, state in enumerate(rig.pages):
        assert (state == ".") == (allocator.ref_count(PageId(page)) == 0)
    assert rig.cache.allocator.num_shared == sum(state.isdigit() for state in rig.pages)


def test_pages_have_a_character_for_each_number_of_holders() -> None:
    states = [page_state(count, is_pinned=False) for count in (0, 1, 2, 9, 30)]

    assert states == ["c", "u", "2", "9", "9"]
    assert page_state(0, is_pinned=True) == "p"


def test_pinned_pages_are_those_of_pinned_nodes() -> None:
    rig = ObservedRig()

    rig.keep(KEPT)

    snapshot = rig.snapshot()
    pinned = [page for node in snapshot.nodes if node.pinned_by == [""] for page in node.pages]
    assert len(pinned) == rig.cache.pins.num_pages == 4
    assert [snapshot.pages[page] for page in pinned] == ["p"] * 4


def test_a_page_copied_on_write_is_marked_while_its_request_holds_it() -> None:
    rig = ObservedRig()
    rig.ask("first", [1, 2, 3, 4, 5, 6], "acme")
    rig.run()
    rig.ask("second", [1, 2, 3, 4, 5, 6, 7], "acme", max_tokens=9)
    rig.step()

    second = rig.running("second")

    assert second.num_cached_tokens == 6
    assert second.copied_page == second.pages[1]
    rig.run()
    assert rig.snapshot().requests == []


def test_a_copy_that_gave_way_to_an_equal_page_is_not_marked_any_more() -> None:
    rig = ObservedRig()
    rig.ask("first", [1, 2, 3, 4, 5, 6], "acme")
    rig.run()
    for name in ("second", "third"):
        rig.ask(name, [1, 2, 3, 4, 5, 6, 7, 8], "acme", max_tokens=9)
    rig.step()

    copies = [each.copied_page for each in rig.snapshot().requests]
    pages = [each.pages[1] for each in rig.snapshot().requests]

    assert pages[0] == pages[1]
    assert copies == [pages[0], None]


def test_requests_tell_where_their_prefix_ends_in_the_tree() -> None:
    rig = ObservedRig()
    rig.ask("first", [1, 2, 3, 4, 5, 6, 7, 8], "acme")
    rig.run()
    rig.ask("left", [1, 2, 3, 4, 9, 9, 9, 9, 9], "acme", max_tokens=3)
    rig.ask("right", [1, 2, 3, 4, 7, 7, 7, 7, 7], "acme", max_tokens=3)
    rig.step()

    upper = rig.node_saying(1, 2, 3, 4)
    left = rig.node_saying(9)

    assert left.parent_id == upper.node_id
    assert rig.running("left").node_id == left.node_id
    assert rig.running("right").node_id == rig.node_saying(7).node_id


def test_hits_are_the_admissions_that_found_a_node() -> None:
    rig = ObservedRig()
    for name in ("a", "b", "c"):
        rig.ask(name, [1, 2, 3, 4, ord(name), 5], "acme")
        rig.run()

    assert rig.node_saying(1, 2, 3, 4).num_hits == 2
    assert rig.node_saying(ord("a")).num_hits == 0


def test_idle_time_begins_with_the_last_use() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3, 4, 5], "acme")
    rig.run()

    rig.now_s += 7

    assert rig.node_saying(1).idle_s == 7


def test_a_node_keeps_its_name_when_it_is_split_or_grows() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3, 4, 5, 6, 7, 8], "acme")
    rig.run()
    before = rig.node_saying(1, 2, 3, 4).node_id

    rig.ask("b", [1, 2, 3, 4, 9, 9, 9, 9, 9], "acme")
    rig.run()

    assert rig.node_saying(1, 2, 3, 4).node_id == before
    assert rig.node_saying(5, 6, 7, 8).node_id != before


def test_names_tell_nothing_without_the_secret() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3, 4, 5], "acme")
    rig.run()
    told = tree_state(rig.cache.tree, rig.cache.pins, NodeNames(), 0.0)

    assert {node.node_id for node in told.nodes}.isdisjoint(
        node.node_id for node in rig.snapshot().nodes
    )


def test_equal_prompts_of_two_tenants_have_different_names() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3, 4, 5], "acme")
    rig.ask("b", [1, 2, 3, 4, 5], "zeta")
    rig.run()

    ids = [node.node_id for node in rig.snapshot().nodes]

    assert len(ids) == len(set(ids))


def test_those_know_a_node_whose_requests_contained_all_of_it() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3, 4, 5, 6, 7, 8, 1], "acme", "ann")
    rig.run()
    rig.ask("b", [1, 2, 3, 4, 9, 9], "acme", "bob")
    rig.run()

    assert rig.node_saying(1, 2, 3, 4).known_to == [["acme", "ann"], ["acme", "bob"]]
    assert rig.node_saying(5, 6, 7, 8).known_to == [["acme", "ann"]]


def test_who_extends_a_leaf_is_the_only_one_who_knows_all_of_it() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3, 4, 5], "acme", "ann", max_tokens=4)
    rig.run()
    rig.ask("b", [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9], "acme", "bob")
    rig.run()

    bobs = [node for node in rig.snapshot().nodes if 6 in node.first_token_ids]

    assert [node.known_to for node in bobs] == [[["acme", "bob"]]]


def test_many_users_are_not_all_remembered_but_the_tenant_is() -> None:
    rig = ObservedRig()
    for number in range(MAX_USERS + 5):
        rig.ask(f"r{number}", [1, 2, 3, 4, 5], "acme", f"user{number}")
        rig.run()
    rig.ask("own", [1, 2, 3, 4, 5], "acme", "")
    rig.run()

    known_to = rig.node_saying(1, 2, 3, 4).known_to

    assert len(known_to) == MAX_USERS + 1
    assert known_to[-1] == list(Owner("acme", ""))


def test_a_tenant_that_is_gone_knows_nothing() -> None:
    rig = ObservedRig(cache_scope=CacheScope.ALL)
    rig.ask("a", [1, 2, 3, 4, 5], "acme", "ann")
    rig.ask("b", [1, 2, 3, 4, 5], "zeta", "zoe")
    rig.run()

    rig.cache.drop_tenant("acme")

    assert rig.node_saying(1, 2, 3, 4).known_to == [["zeta", "zoe"]]


def test_of_a_large_tree_each_scope_tells_its_largest_subtrees() -> None:
    rig = ObservedRig(num_pages=4000)
    for tenant, count in (("acme", 300), ("zeta", 3)):
        for number in range(count):
            rig.ask(f"{tenant}{number}", [number, *[7] * (4 + number % 40)], tenant)
            rig.run()

    state = tree_state(rig.cache.tree, rig.cache.pins, NodeNames(), 0.0, max_nodes=200)

    told = [node.tenant for node in state.nodes]
    assert (told.count("acme"), told.count("zeta")) == (100, 3)
    assert sum(each.num_nodes for each in state.hidden) == rig.cache.tree.num_nodes - 103
    assert min(node.num_tokens for node in state.nodes if node.tenant == "acme") > 28
    ids = {None, *(node.node_id for node in state.nodes)}
    assert all(node.parent_id in ids for node in state.nodes)


def test_steps_are_counted_by_tenant_in_half_seconds() -> None:
    rig = ObservedRig(max_num_seqs=2)
    for name, tenant in (("a", "acme"), ("b", "zeta"), ("c", "zeta"), ("d", "zeta")):
        rig.ask(name, [1, 2, 3, 4, 5], tenant, max_tokens=2)

    rig.step()
    rig.step()

    first, second = rig.snapshot().intervals
    acme, zeta = sorted(first.counts, key=lambda counts: counts.tenant)
    assert second.at == first.at + 0.5
    assert (acme.tenant, acme.prefill_tokens, acme.decode_tokens) == ("acme", 5, 0)
    assert (acme.num_waiting, zeta.num_waiting) == (0, 2)
    assert sum(counts.decode_tokens for counts in second.counts) == 2


def test_cached_tokens_count_in_the_step_that_admits() -> None:
    rig = ObservedRig()
    for name in ("a", "b"):
        rig.ask(name, [1, 2, 3, 4, 5], "acme")
        rig.run()

    assert [each.counts[0].cached_tokens for each in rig.snapshot().intervals] == [0, 4]


def test_steps_are_forgotten_after_a_minute() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3], "acme")
    rig.run()

    rig.now_s += 61

    assert rig.snapshot().intervals == []


def test_an_interval_that_lasts_is_told_as_it_is_now() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3], "acme", max_tokens=2)
    rig.step()
    told = rig.snapshot().intervals
    rig.now_s -= 0.5
    rig.step()

    assert [each.counts[0].decode_tokens for each in told] == [0]
    assert [each.counts[0].decode_tokens for each in rig.snapshot().intervals] == [1]


@pytest.mark.parametrize("cache_scope", list(CacheScope))
def test_a_snapshot_is_read_as_it_was_written(cache_scope: CacheScope) -> None:
    rig = ObservedRig(cache_scope=cache_scope)
    rig.keep(KEPT)
    rig.ask("a", [*PREAMBLE, 1, 2], "acme", "ann", max_tokens=4)
    rig.step()
    snapshot = rig.snapshot()

    assert CacheSnapshot.from_dict(orjson.loads(orjson.dumps(snapshot))) == snapshot
    assert snapshot.by_user == (cache_scope is CacheScope.USER)
