"""Tenants that try to find out what other tenants have cached, and what they may share.

Every test runs under a witness that knows who computed each slot (`scope_helpers.py`), and on pages
of integers, where a wrong page gives a wrong token.
"""

from enum import Enum, auto
from typing import NamedTuple

import pytest
from unit.cache_helpers import generate_alone
from unit.scope_helpers import TenantRig, ask

from chatserve.cache.scope import NO_RETENTION
from chatserve.cache.scope_map import CacheScope
from chatserve.engine.api import KeptPrefix
from chatserve.engine.request import Request

SECRET = list(range(100, 160))
PREAMBLE = list(range(10, 50))
LENGTHS = range(1, 41)

every_page_size = pytest.mark.parametrize("page_size", [1, 2, 4, 16])


class Moment(Enum):
    """When the attacker comes."""

    WITH_THE_VICTIM = auto()
    DURING_ITS_PREFILL = auto()
    DURING_ITS_ANSWER = auto()
    AFTER_ITS_END = auto()


every_moment = pytest.mark.parametrize("moment", Moment)


class Attack(NamedTuple):
    """What somebody got who asked with the first `length` tokens of tenant A's prompt."""

    num_found: int | None
    num_common_pages: int


def attack(
    length: int,
    page_size: int,
    moment: Moment,
    tenant: str,
    *,
    is_exact: bool = False,
    preamble: tuple[int, ...] = (),
) -> Attack:
    """Ask as a tenant with A's prompt, or with one that goes on differently after `length`."""
    rig = TenantRig(page_size=page_size, num_pages=32 + 192 // page_size, budget=16)
    if preamble:
        rig.keep(KeptPrefix("", "preamble", preamble))
    secret = [*preamble, *SECRET[:length]]
    victim = ask("victim", secret, "A", max_tokens=6)
    start_victim(rig, victim, moment)
    probe = ask("probe", secret if is_exact else [*secret, 99], tenant, max_tokens=4)

    rig.run(probe)

    common = rig.pages_of(victim) & rig.pages_of(probe)
    return Attack(probe.num_cached_tokens, len(common))


def start_victim(rig: TenantRig, victim: Request, moment: Moment) -> None:
    rig.add(victim)
    if moment is Moment.DURING_ITS_PREFILL:
        rig.step()
    elif moment is Moment.DURING_ITS_ANSWER:
        while victim.num_output_tokens < 3:
            rig.step()
    elif moment is Moment.AFTER_ITS_END:
        rig.run()


# ── Another tenant ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_exact", [True, False])
@every_moment
@every_page_size
def test_another_tenant_finds_nothing_of_a_prompt_and_gets_no_page_of_it(
    page_size: int, moment: Moment, is_exact: bool
) -> None:
    attacks = [attack(each, page_size, moment, "B", is_exact=is_exact) for each in LENGTHS]

    assert [each.num_found for each in attacks] == [0] * len(LENGTHS)
    assert [each.num_common_pages for each in attacks] == [0] * len(LENGTHS)


@every_moment
@every_page_size
def test_another_tenant_finds_the_preamble_and_nothing_of_what_follows(
    page_size: int, moment: Moment
) -> None:
    preamble = tuple(PREAMBLE[:7])
    attacks = [attack(each, page_size, moment, "B", preamble=preamble) for each in LENGTHS]

    assert [each.num_found for each in attacks] == [7] * len(LENGTHS)
    assert [each.num_common_pages for each in attacks] == [7 // page_size] * len(LENGTHS)


@pytest.mark.parametrize("moment", [Moment.DURING_ITS_ANSWER, Moment.AFTER_ITS_END])
@every_page_size
def test_the_same_attack_within_the_tenant_finds_every_token(
    page_size: int, moment: Moment
) -> None:
    """The positive control: an attack that could not succeed anywhere would show nothing."""
    attacks = [attack(each, page_size, moment, "A") for each in LENGTHS]

    assert [each.num_found for each in attacks] == list(LENGTHS)
    assert [each.num_common_pages for each in attacks] == [each // page_size for each in LENGTHS]


def test_another_tenant_does_not_wait_for_a_prefill_of_the_same_prompt() -> None:
    rig = TenantRig(budget=64)
    rig.add(ask("victim", SECRET[:30], "A"), ask("other", SECRET[:30], "B"))

    output = rig.step()

    assert [(run.request.request_id, run.start) for run in output.scheduled] == [
        ("victim", 0),
        ("other", 0),
    ]


def test_within_the_tenant_it_does_wait() -> None:
    rig = TenantRig(budget=64)
    rig.add(ask("victim", SECRET[:30], "A"), ask("other", SECRET[:30], "A"))

    output = rig.step()

    assert [run.request.request_id for run in output.scheduled] == ["victim"]


@pytest.mark.parametrize(("tenant", "num_common"), [("A", 8), ("B", 0)])
def test_equal_pages_computed_side_by_side_become_one_within_a_tenant_only(
    tenant: str, num_common: int
) -> None:
    rig = TenantRig(page_size=2)
    first = ask("first", SECRET[:1], "A", max_tokens=18)
    second = ask("second", SECRET[:1], tenant, max_tokens=18)
    rig.add(first, second)
    for _ in range(17):
        rig.step()

    assert first.held is not None
    assert second.held is not None
    assert len(set(first.held.page_ids) & set(second.held.page_ids)) == num_common
    assert rig.outputs["first"] == rig.outputs["second"]


@pytest.mark.parametrize(("tenant", "num_copies"), [("A", 1), ("B", 0)])
def test_the_page_that_is_being_written_is_lent_within_a_tenant_only(
    tenant: str, num_copies: int
) -> None:
    rig = TenantRig(page_size=16)
    rig.add(ask("victim", SECRET[:10], "A", max_tokens=5))
    rig.step()
    rig.add(ask("probe", [*SECRET[:9], 99], tenant))

    output = rig.step()

    assert len(output.page_copies) == num_copies


@every_page_size
def test_a_preempted_request_finds_its_own_pages_again_and_none_of_another_tenant(
    page_size: int,
) -> None:
    """What it reads is checked by the witness: its answer is token for token that of the other."""
    rig = TenantRig(page_size=page_size, num_pages=64 // page_size + 1)
    rig.add(ask("victim", SECRET[:12], "A", max_tokens=45))
    rig.add(ask("other", SECRET[:12], "B", max_tokens=45))

    rig.run()

    alone = generate_alone(SECRET[:12], 45, rig.next_token)
    assert rig.scheduler.num_preemptions > 0
    assert rig.outputs == {"victim": alone, "other": alone}


# ── The preamble ─────────────────────────────────────────────────────────────────────────────


def found_behind(prefix: KeptPrefix, page_size: int, *users: tuple[str, str]) -> list[int | None]:
    """Keep a prefix, then let users ask the same thing behind it; return what each has found."""
    rig = TenantRig(
        page_size=page_size, num_pages=32 + 384 // page_size, cache_scope=CacheScope.USER
    )
    rig.keep(prefix)
    prompt = [*prefix.token_ids, *SECRET[:20]]
    requests = [ask(f"r{index}", prompt, *user) for index, user in enumerate(users)]
    for request in requests:
        rig.run(request)
    return [request.num_cached_tokens for request in requests]


@pytest.mark.parametrize("is_pinned", [True, False])
@every_page_size
def test_all_tenants_share_the_preamble_to_its_last_token_and_nothing_behind_it(
    page_size: int, is_pinned: bool
) -> None:
    found = [
        found_behind(
            KeptPrefix("", "preamble", tuple(PREAMBLE[:length]), is_pinned),
            page_size,
            ("A", "ann"),
            ("B", "bob"),
        )
        for length in LENGTHS
    ]

    assert found == [[length, length] for length in LENGTHS]


@pytest.mark.parametrize("is_pinned", [True, False])
@every_page_size
def test_users_of_a_tenant_share_its_prompt_to_the_last_token_and_nothing_behind_it(
    page_size: int, is_pinned: bool
) -> None:
    found = [
        found_behind(
            KeptPrefix("A", "prompt", tuple(PREAMBLE[:length]), is_pinned),
            page_size,
            ("A", "ann"),
            ("A", "amy"),
            ("B", "ann"),
        )
        for length in LENGTHS
    ]

    assert found == [[length, length, 0] for length in LENGTHS]


@every_page_size
def test_the_preamble_is_one_copy_in_memory(page_size: int) -> None:
    rig = TenantRig(page_size=page_size)
    rig.keep(KeptPrefix("", "preamble", tuple(PREAMBLE[:18])))
    requests = [ask(tenant, [*PREAMBLE[:18], 99], tenant, max_tokens=8) for tenant in "AB"]
    rig.add(*requests)
    rig.step()

    first, second = (request.held.page_ids for request in requests if request.held)
    num_whole = 18 // page_size
    assert first[:num_whole] == second[:num_whole]
    assert set(first[num_whole:]) & set(second[num_whole:]) == set()


def test_a_preamble_that_was_never_computed_is_shared_by_whoever_comes_first() -> None:
    rig = TenantRig(page_size=4)
    rig.keeper.keep_exactly([KeptPrefix("", "preamble", tuple(PREAMBLE[:18]), is_pinned=False)])
    rig.scheduler.abort([each.request_id for each in rig.scheduler.requests_of("")])
    rig.witness.prefixes.append(KeptPrefix("", "preamble", tuple(PREAMBLE[:18])))
    first, second = (ask(tenant, [*PREAMBLE[:18], 98, 99], tenant) for tenant in "AB")

    rig.run(first)
    rig.run(second)

    assert (first.num_cached_tokens, second.num_cached_tokens) == (0, 16)


def two_behind_a_preamble(budget: int) -> tuple[TenantRig, Request, Request]:
    """Return requests of two tenants that are equal to the last token; 20 of 80 are public."""
    rig = TenantRig(page_size=4, budget=budget)
    prefix = KeptPrefix("", "preamble", tuple(PREAMBLE[:20]))
    rig.scheduler.scope_map.register("", prefix.token_ids, NO_RETENTION)
    rig.witness.prefixes.append(prefix)
    first, second = (ask(tenant, [*PREAMBLE[:20], *SECRET], tenant) for tenant in "AB")
    rig.add(first, second)
    return rig, first, second


def test_another_tenant_waits_for_a_prefill_of_the_preamble() -> None:
    rig, first, second = two_behind_a_preamble(budget=100)

    admitted = [rig.step().admitted, rig.step().admitted]

    assert admitted == [[first], [second]]
    assert second.num_cached_tokens == 20


def test_another_tenant_does_not_wait_for_what_follows_the_preamble() -> None:
    rig, first, second = two_behind_a_preamble(budget=24)
    for _ in range(3):
        rig.step()

    assert first.is_prefilling
    assert rig.step().admitted == [second]
    assert second.num_cached_tokens == 20


# ── Users, and everybody ─────────────────────────────────────────────────────────────────────


@every_moment
@every_page_size
def test_a_user_finds_nothing_of_another_user_of_the_tenant(page_size: int, moment: Moment) -> None:
    rig = TenantRig(page_size=page_size, num_pages=96, budget=16, cache_scope=CacheScope.USER)
    victim = ask("victim", SECRET[:30], "A", "ann", max_tokens=6)
    start_victim(rig, victim, moment)
    probe = ask("probe", SECRET[:30], "A", "amy", max_tokens=6)

    rig.run(probe)

    assert probe.num_cached_tokens == 0
    assert rig.pages_of(victim) & rig.pages_of(probe) == set()


def test_a_user_finds_its_own_conversation_again() -> None:
    rig = TenantRig(cache_scope=CacheScope.USER)
    rig.run(ask("first", SECRET[:30], "A", "ann"))
    again = ask("again", [*SECRET[:30], 99], "A", "ann")

    rig.run(again)

    assert again.num_cached_tokens == 30


def test_users_of_the_same_name_in_two_tenants_are_two() -> None:
    rig = TenantRig(cache_scope=CacheScope.USER)
    rig.run(ask("first", SECRET[:30], "A", "ann"))
    other = ask("other", SECRET[:30], "B", "ann")

    rig.run(other)

    assert other.num_cached_tokens == 0


@every_page_size
def test_with_the_widest_scope_everybody_shares_everything(page_size: int) -> None:
    rig = TenantRig(page_size=page_size, cache_scope=CacheScope.ALL)
    rig.run(ask("victim", SECRET[:30], "A", "ann"))
    probe = ask("probe", [*SECRET[:30], 99], "B", "bob")

    rig.run(probe)

    assert probe.num_cached_tokens == 30
