"""Where the spans of a prompt end, case by case and against a comparison with every prefix."""

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.scope_helpers import common_length

from chatserve.cache.scope import NO_RETENTION, PUBLIC, Retention, Scope, ScopePath, Span
from chatserve.cache.scope_map import CacheScope, ScopeMap

PREAMBLE = [1, 2, 3, 4, 5, 6]
PROMPT = [*PREAMBLE, 20, 21, 22]
KEPT = Retention(priority=5)
CHATS = Retention(priority=1, ttl_s=60.0)

SHORT = st.lists(st.integers(0, 1), min_size=1, max_size=8)
OWNERS = st.sampled_from(["", "A", "B"])


def make_map(
    *prefixes: tuple[str, Sequence[int]], cache_scope: CacheScope = CacheScope.TENANT
) -> ScopeMap:
    """Return a map that knows prefixes by owner; the empty owner's are preambles."""
    scope_map = ScopeMap(cache_scope, CHATS)
    for tenant, token_ids in prefixes:
        scope_map.register(tenant, token_ids, KEPT)
    return scope_map


def ends(path: ScopePath) -> list[tuple[Scope, int]]:
    return [(span.scope, span.end) for span in path.spans]


A, B, REST = Scope("A"), Scope("B"), sys.maxsize


# ── The preamble ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("prompt", "public_end"),
    [
        ([*PREAMBLE, 9, 9], 6),
        (PREAMBLE, 6),
        (PREAMBLE[:3], 3),
        ([*PREAMBLE[:3], 9, 5, 6], 3),
        ([1], 1),
    ],
    ids=["whole", "nothing behind it", "shorter", "parts inside", "one token"],
)
def test_public_are_the_leading_ids_that_equal_the_preamble(
    prompt: list[int], public_end: int
) -> None:
    path = make_map(("", PREAMBLE)).path_of(prompt, "A")

    assert ends(path) == [(PUBLIC, public_end), (A, REST)]


@pytest.mark.parametrize(
    "prompt",
    [[], [9, *PREAMBLE], [2, 3, 4], [9]],
    ids=["empty", "moved", "its middle", "another token"],
)
def test_a_prompt_that_begins_otherwise_has_no_public_part(prompt: list[int]) -> None:
    path = make_map(("", PREAMBLE)).path_of(prompt, "A")

    assert ends(path) == [(A, REST)]


def test_without_a_preamble_everything_is_the_tenants() -> None:
    assert ends(make_map().path_of(PREAMBLE, "A")) == [(A, REST)]


def test_of_two_preambles_the_one_that_shares_more_counts() -> None:
    scope_map = make_map(("", PREAMBLE), ("", [1, 2, 8, 8]), ("", [1]))

    assert ends(scope_map.path_of([1, 2, 8, 9], "A"))[0] == (PUBLIC, 3)
    assert ends(scope_map.path_of([1, 2, 3, 9], "A"))[0] == (PUBLIC, 3)
    assert ends(scope_map.path_of([1, 2, 9, 9], "A"))[0] == (PUBLIC, 2)
    assert ends(scope_map.path_of([1, 9], "A"))[0] == (PUBLIC, 1)


def test_a_text_that_repeats_the_preamble_extends_nothing() -> None:
    path = make_map(("", PREAMBLE)).path_of([*PREAMBLE, *PREAMBLE, 9], "A")

    assert ends(path) == [(PUBLIC, 6), (A, REST)]


def test_a_tenant_cannot_make_anything_public() -> None:
    scope_map = make_map(("", PREAMBLE), ("A", [*PREAMBLE, 9, 9, 9]))

    path = scope_map.path_of([*PREAMBLE, 9, 9, 9, 7], "B")

    assert ends(path) == [(PUBLIC, 6), (B, REST)]


# ── A tenant's prompt, and its users ─────────────────────────────────────────────────────────


def test_behind_the_preamble_comes_the_tenants_prompt_and_then_the_conversation() -> None:
    path = make_map(("", PREAMBLE), ("A", PROMPT)).path_of([*PROMPT, 30, 31], "A", "ann")

    assert ends(path) == [(PUBLIC, 6), (A, 9), (A, REST)]
    assert [span.retention for span in path.spans] == [KEPT, KEPT, CHATS]


def test_with_the_narrow_scope_the_conversation_is_the_users() -> None:
    scope_map = make_map(("", PREAMBLE), ("A", PROMPT), cache_scope=CacheScope.USER)

    path = scope_map.path_of([*PROMPT, 30, 31], "A", "ann")

    assert ends(path) == [(PUBLIC, 6), (A, 9), (Scope("A", "user ann"), REST)]


def test_a_registered_prompt_has_no_user_of_its_own() -> None:
    scope_map = make_map(("", PREAMBLE), ("A", PROMPT), cache_scope=CacheScope.USER)

    assert ends(scope_map.path_of(PROMPT, "A"))[:2] == [(PUBLIC, 6), (A, 9)]


def test_users_are_told_apart_with_the_narrow_scope_only() -> None:
    wide, narrow = (make_map(cache_scope=each) for each in (CacheScope.TENANT, CacheScope.USER))

    assert wide.path_of([7], "A", "ann") == wide.path_of([7], "A", "amy")
    assert narrow.path_of([7], "A", "ann") != narrow.path_of([7], "A", "amy")
    assert narrow.path_of([7], "A", "ann") != narrow.path_of([7], "B", "ann")


def test_names_that_look_alike_when_joined_are_different_scopes() -> None:
    scope_map = make_map(cache_scope=CacheScope.USER)

    paths = [scope_map.path_of([7], *names) for names in (("a", "bc"), ("ab", "c"), ("abc", ""))]

    assert len({path.spans for path in paths}) == 3


def test_another_tenants_prompt_ends_at_the_preamble() -> None:
    path = make_map(("", PREAMBLE), ("A", PROMPT)).path_of(PROMPT, "B", "ann")

    assert ends(path) == [(PUBLIC, 6), (B, REST)]


def test_a_tenants_prompt_that_the_preamble_covers_adds_no_span() -> None:
    path = make_map(("", PREAMBLE), ("A", PREAMBLE[:4])).path_of([*PREAMBLE, 9], "A")

    assert ends(path) == [(PUBLIC, 6), (A, REST)]


def test_with_the_widest_scope_everything_is_public() -> None:
    scope_map = make_map(("", PREAMBLE), ("A", PROMPT), cache_scope=CacheScope.ALL)

    path = scope_map.path_of([*PROMPT, 30], "A", "ann")

    assert {span.scope for span in path.spans} == {PUBLIC}


def test_two_prompts_share_scopes_as_far_as_both_are_public() -> None:
    scope_map = make_map(("", PREAMBLE), ("A", PROMPT))
    ours, theirs = (scope_map.path_of([*PROMPT, 30], tenant) for tenant in "AB")
    shorter = scope_map.path_of([*PREAMBLE[:3], 9], "B")

    assert ours.shared_end(theirs) == 6
    assert theirs.shared_end(shorter) == 3
    assert ours.shared_end(ours) == REST


# ── Registering ──────────────────────────────────────────────────────────────────────────────


def test_an_unregistered_preamble_is_public_no_more() -> None:
    scope_map = make_map(("", PREAMBLE))

    scope_map.unregister("", PREAMBLE, KEPT)

    assert ends(scope_map.path_of([*PREAMBLE, 9], "A")) == [(A, REST)]


def test_what_was_registered_twice_has_to_be_unregistered_twice() -> None:
    scope_map = make_map(("", PREAMBLE), ("", PREAMBLE))

    scope_map.unregister("", PREAMBLE, KEPT)

    assert ends(scope_map.path_of(PREAMBLE, "A"))[0] == (PUBLIC, 6)


def test_of_two_retentions_of_one_prefix_the_greater_holds_while_it_is_there() -> None:
    scope_map = make_map(("A", PROMPT))
    longer = Retention(priority=9)
    scope_map.register("A", PROMPT, longer)

    assert scope_map.path_of(PROMPT, "A").spans[0].retention == longer
    scope_map.unregister("A", PROMPT, longer)
    assert scope_map.path_of(PROMPT, "A").spans[0].retention == KEPT


def test_a_conversation_has_the_retention_of_conversations() -> None:
    assert ScopeMap().path_of([7], "A").spans == (Span(A, REST, NO_RETENTION),)
    assert make_map().path_of([7], "A").spans == (Span(A, REST, CHATS),)


@given(
    prefixes=st.lists(st.tuples(OWNERS, SHORT), max_size=8),
    gone=st.sets(st.integers(0, 7)),
    prompt=SHORT,
)
def test_spans_end_where_the_longest_common_prefix_with_anything_registered_ends(
    prefixes: list[tuple[str, list[int]]], gone: set[int], prompt: list[int]
) -> None:
    scope_map = make_map(*prefixes, cache_scope=CacheScope.USER)
    left = [each for index, each in enumerate(prefixes) if index not in gone]
    for index in gone & set(range(len(prefixes))):
        scope_map.unregister(*prefixes[index], KEPT)

    path = scope_map.path_of(prompt, "A", "ann")

    public, own = (
        max((common_length(each, prompt) for owner, each in left if owner == tenant), default=0)
        for tenant in ("", "A")
    )
    for position in range(len(prompt)):
        scope = PUBLIC if position < public else A if position < own else Scope("A", "user ann")
        assert path.span_at(position).scope == scope
