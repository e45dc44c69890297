"""What of a snapshot is there for whom: members learn nothing of anybody else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.observed_rig import PREAMBLE, ObservedRig

from chatserve.cache.scope_map import CacheScope
from chatserve.engine.api import KeptPrefix
from chatserve.gateway.cache_view import worker_view
from chatserve.gateway.cache_viewer import Viewer
from chatserve.identity import Identity, Role
from chatserve.text.turns import Turn

ANN = Identity("acme", "ann")
BOB = Identity("acme", "bob")
ZOE = Identity("zeta", "zoe")
OPERATOR = Identity("acme", "root", Role.OPERATOR)
PROMPT = (800, 801, 802, 803, 804)

KEPT = (
    KeptPrefix("", "preamble", PREAMBLE),
    KeptPrefix("acme", "prompt", (*PREAMBLE, *PROMPT)),
)


def view_of(rig: ObservedRig, identity: Identity, only_tenant: str | None = None) -> dict[str, Any]:
    snapshot = rig.snapshot()
    viewer = Viewer(identity, snapshot.by_user, only_tenant)
    return worker_view(snapshot, viewer, spelled)


def spelled(before: Sequence[int], token_ids: Sequence[int]) -> list[Turn]:
    """Read tokens as their numbers; what stands before them is the role."""
    return [Turn(" ".join(map(str, before)), " ".join(map(str, token_ids)))]


def texts_of(view: dict[str, Any]) -> list[str | None]:
    return [node["text"] for node in view["nodes"]]


@dataclass(frozen=True, slots=True)
class Visit:
    """A request to come: whose, when, how much of the preamble it begins with, and what it adds."""

    who: Identity
    step: int
    num_public: int
    words: list[int]
    max_tokens: int


def visits_of(*who: Identity) -> st.SearchStrategy[list[Visit]]:
    visit = st.builds(
        Visit,
        st.sampled_from(who),
        st.integers(0, 8),
        st.integers(0, len(PREAMBLE)),
        st.lists(st.integers(0, 1), min_size=1, max_size=9),
        st.integers(1, 5),
    )
    return st.lists(visit, max_size=6)


def run(visits: Iterable[Visit], cache_scope: CacheScope, num_steps: int) -> ObservedRig:
    """Return the state after some steps; there is room for everybody at once."""
    rig = ObservedRig(cache_scope=cache_scope)
    rig.keep(*KEPT)
    rig.now_s = 100.0
    for step in range(num_steps):
        for number, each in enumerate(visits):
            if each.step == step:
                prompt = [*PREAMBLE[: each.num_public], *each.words]
                name = f"{each.who.user}{step}.{number}"
                rig.ask(name, prompt, each.who.tenant, each.who.user, each.max_tokens)
        rig.step()
    return rig


@settings(max_examples=150)
@given(visits_of(ANN), visits_of(ZOE), st.integers(1, 14))
def test_member_sees_what_there_were_without_the_other_tenant(
    ours: list[Visit], theirs: list[Visit], num_steps: int
) -> None:
    both = run([*ours, *theirs], CacheScope.TENANT, num_steps)
    alone = run(ours, CacheScope.TENANT, num_steps)

    assert view_of(both, ANN) == view_of(alone, ANN)


@settings(max_examples=150)
@given(visits_of(ANN), visits_of(BOB, ZOE), st.integers(1, 14))
def test_user_sees_what_there_were_without_others_where_users_are_kept_apart(
    ours: list[Visit], theirs: list[Visit], num_steps: int
) -> None:
    both = run([*ours, *theirs], CacheScope.USER, num_steps)
    alone = run(ours, CacheScope.USER, num_steps)

    assert view_of(both, ANN) == view_of(alone, ANN)


@settings(max_examples=60)
@given(visits_of(ANN, BOB), visits_of(ZOE), st.sampled_from(CacheScope), st.integers(1, 14))
def test_every_view_is_whole(
    ours: list[Visit], theirs: list[Visit], cache_scope: CacheScope, num_steps: int
) -> None:
    rig = run([*ours, *theirs], cache_scope, num_steps)

    for identity in (ANN, ZOE, OPERATOR):
        view = view_of(rig, identity)
        known: set[int | None] = {None}
        for node in view["nodes"]:
            assert node["parent"] in known
            known.add(node["id"])
        assert len(known) == len(view["nodes"]) + 1
        assert len(view["pages"]) == view["num_pages"]
        for request in view["requests"]:
            assert all(view["pages"][page] not in ".?cp" for page in request["pages"])
        assert set(view["copied_pages"]) <= {p for r in view["requests"] for p in r["pages"]}


def two_tenants(cache_scope: CacheScope = CacheScope.TENANT) -> ObservedRig:
    """Return a state in which ann, bob and zoe each have a request running."""
    rig = ObservedRig(cache_scope=cache_scope)
    rig.keep(*KEPT)
    rig.ask("ann1", [*PREAMBLE, 1, 1, 1, 1, 1, 1], "acme", "ann", max_tokens=9)
    rig.ask("bob1", [*PREAMBLE, 2, 2, 2, 2, 2, 2], "acme", "bob", max_tokens=9)
    rig.ask("zoe1", [*PREAMBLE, 3, 3, 3, 3, 3, 3], "zeta", "zoe", max_tokens=9)
    rig.step()
    return rig


def test_member_sees_the_tenants_nodes_and_the_words_of_its_own() -> None:
    view = view_of(two_tenants(), ANN)

    own = {node["text"] for node in view["nodes"] if node["scope"] == "mine"}
    assert {node["scope"] for node in view["nodes"]} == {"public", "mine"}
    assert "912 913 914 1 1 1 1 1" in own
    assert None in own  # bob's
    assert not any("2 2" in (text or "") for text in own)
    assert view["nodes"][0]["text"].startswith("900 901 902 903")


def test_member_knows_no_names_of_others() -> None:
    view = view_of(two_tenants(), ANN)

    assert [request["id"] for request in view["requests"]] == ["ann1", None]
    assert {each["tenant"] for each in (*view["nodes"], *view["requests"])} == {None}


def test_shared_pages_count_the_viewers_own_holders_only() -> None:
    rig = two_tenants()

    first = rig.running("ann1").pages[0]
    assert rig.snapshot().pages[first] == "3"
    assert view_of(rig, ANN)["pages"][0] == "2"
    assert view_of(rig, ZOE)["pages"][0] == "u"


def test_public_nodes_tell_a_member_neither_hits_nor_use() -> None:
    public, *_ = view_of(two_tenants(), ANN)["nodes"]

    assert (public["scope"], public["num_hits"], public["idle_s"]) == ("public", None, None)
    assert (public["num_sharers"], public["pinned"]) == (2, True)


def test_user_is_alone_where_users_are_kept_apart() -> None:
    view = view_of(two_tenants(CacheScope.USER), ANN)

    assert [request["id"] for request in view["requests"]] == ["ann1"]
    assert "912 913 914 800 801 802 803 804" in texts_of(view)  # the tenant's prompt
    assert all(text is not None for text in texts_of(view))


def test_operator_sees_all_by_name_and_words_of_its_own_and_public_only() -> None:
    view = view_of(two_tenants(), OPERATOR)

    assert {(node["scope"], node["tenant"]) for node in view["nodes"]} == {
        ("public", None),
        ("mine", "acme"),
        ("other", "zeta"),
    }
    assert [request["id"] for request in view["requests"]] == ["ann1", "bob1", "zoe1"]
    texts = [text for text in texts_of(view) if text is not None]
    assert not any(word in text.split() for text in texts for word in "123")
    assert "?" not in view["pages"]


def test_operator_can_look_at_one_tenant() -> None:
    view = view_of(two_tenants(), OPERATOR, "zeta")

    assert {node["tenant"] for node in view["nodes"]} == {None, "zeta"}
    assert [request["tenant"] for request in view["requests"]] == ["zeta"]
    assert sum(step["prefill_tokens"] for step in view["steps"]) == 6


def test_what_all_share_is_shown_to_those_who_said_it() -> None:
    view = view_of(two_tenants(CacheScope.ALL), ZOE)

    said = [text for text in texts_of(view) if text is not None]
    assert len(said) == len(view["nodes"])
    assert any("3 3 3" in text for text in said)
    assert not any(word in text.split() for text in said for word in ("1", "2", "800"))


def test_pin_of_another_tenant_is_not_told() -> None:
    rig = ObservedRig()
    rig.keep(
        KeptPrefix("", "preamble", PREAMBLE, is_pinned=False),
        KeptPrefix("zeta", "prompt", (*PREAMBLE, *PROMPT)),
    )

    assert {node["pinned"] for node in view_of(rig, ANN)["nodes"]} == {False}
    assert any(node["pinned"] for node in view_of(rig, ZOE)["nodes"])


def test_text_is_cut_and_its_blanks_are_one() -> None:
    rig = ObservedRig()
    rig.ask("a", [1, 2, 3, 4, 5], "acme", "ann")
    rig.run()
    snapshot = rig.snapshot()

    turns = [Turn("system", "You\n\n are "), Turn("user", "x" * 100), Turn("assistant", "y")]
    view = worker_view(snapshot, Viewer(ANN, by_user=False), lambda *_: turns)

    (node,) = view["nodes"]
    assert node["text"] == "You are " + "x" * 72
    assert node["roles"] == [{"role": "system", "at": 0}, {"role": "user", "at": 8}]


def test_equal_beginnings_that_fill_no_page_are_told_to_those_who_may_read_both() -> None:
    rig = ObservedRig()
    rig.ask("ann1", [7, 7, 1, 1, 1], "acme", "ann")
    rig.ask("ann2", [7, 7, 2, 2, 2], "acme", "ann")
    rig.ask("bob1", [7, 7, 2, 3, 3], "acme", "bob")
    rig.run()

    first, second, bobs = sorted(view_of(rig, ANN)["nodes"], key=lambda node: node["text"] or "~")
    assert first["alike"] == {"num_tokens": 2, "node_id": second["id"]}
    assert second["alike"] == {"num_tokens": 2, "node_id": first["id"]}
    assert (bobs["text"], bobs["alike"]) == (None, None)


@pytest.mark.parametrize("identity", [ANN, ZOE])
def test_steps_are_the_viewers_own(identity: Identity) -> None:
    rig = two_tenants()
    rig.step()

    steps = view_of(rig, identity)["steps"]

    decoding = 2 if identity is ANN else 1
    assert steps[-1]["decode_tokens"] == decoding
    assert view_of(rig, OPERATOR)["steps"][-1]["decode_tokens"] == 3
