"""The registry of prompts: what it stores, what it refuses, and its bell."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from chatserve.errors import Conflict, InvalidRequest
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.named_prompt import MAX_TEXT_BYTES, NamedPrompt
from chatserve.store.prompts import MAX_PROMPTS, MAX_PROMPTS_OF_TENANT

TEXT = "Grüße, 世界 👋🏽\x00\u2028 {{ not a template }}"
BLOCK_MS = 20


def make_prompt(name: str = "support", tenant: str = "acme", text: str = TEXT) -> NamedPrompt:
    return NamedPrompt(tenant, name, text)


def make_preamble(text: str = TEXT) -> NamedPrompt:
    return make_prompt("preamble", "", text)


async def add_many(store: Store, tenant: str, count: int) -> None:
    for number in range(count):
        await store.prompts.add(make_prompt(f"p{number}", tenant))


# ── What is stored ───────────────────────────────────────────────────────────────────────────


async def test_a_prompt_is_read_as_it_was_added(store: Store) -> None:
    loose = replace(make_prompt(), is_pinned=False, priority=-3, ttl_s=0.5)

    stored = await store.prompts.add(loose)

    assert replace(stored, created_at=0, revision="") == replace(loose, version=1)
    assert stored.created_at > 1_700_000_000
    assert await store.prompts.get("acme", "support") == stored
    assert await store.prompts.list() == [stored]


async def test_adding_under_the_same_name_makes_a_version_that_is_current_at_once(
    store: Store,
) -> None:
    first = await store.prompts.add(make_prompt())
    again = await store.prompts.add(make_prompt())

    last = await store.prompts.add(make_prompt(text="new"))

    assert len({first.revision, again.revision, last.revision}) == 3
    assert [first.version, again.version, last.version] == [1, 2, 3]
    assert await store.prompts.list() == [last]


async def test_names_belong_to_their_tenant(store: Store) -> None:
    ours = await store.prompts.add(make_prompt(tenant="acme"))
    theirs = await store.prompts.add(make_prompt(tenant="zeta"))

    assert await store.prompts.list("acme") == [ours]
    assert await store.prompts.list("zeta") == [theirs]
    assert await store.prompts.list() == [ours, theirs]
    assert await store.prompts.list("acm") == []


async def test_removed_prompt_is_gone_and_cannot_be_removed_again(store: Store) -> None:
    await store.prompts.add(make_prompt())

    assert await store.prompts.remove("acme", "support")
    assert await store.prompts.get("acme", "support") is None
    assert not await store.prompts.remove("acme", "support")


async def test_there_is_one_preamble_at_a_time(store: Store) -> None:
    assert await store.prompts.get("", "preamble") is None
    await store.prompts.add(make_preamble("old"))

    new = await store.prompts.add(make_preamble("new"))

    assert await store.prompts.get("", "preamble") == new
    assert await store.prompts.list("") == [new]


# ── What is refused ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("field", ["name", "tenant"])
@pytest.mark.parametrize(
    "value",
    ["a/b", "../etc", "a b", "a*", "{a}", "-a", ".a", "a\n", "a\x00", "ü", "a" * 65, "a:b"],
    ids=ascii,
)
async def test_hostile_names_are_refused(store: Store, field: str, value: str) -> None:
    hostile = make_prompt(**{field: value})

    with pytest.raises(InvalidRequest) as refusal:
        await store.prompts.add(hostile)

    assert refusal.value.param == field
    assert await store.prompts.list() == []


@pytest.mark.parametrize("name", ["", "other"])
async def test_a_preamble_has_no_other_name(store: Store, name: str) -> None:
    with pytest.raises(InvalidRequest, match="name"):
        await store.prompts.add(replace(make_preamble(), name=name))

    assert await store.prompts.get("", "preamble") is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must not be empty"),
        (" \n\t ", "must not be empty"),
        ("ü" * (MAX_TEXT_BYTES // 2) + "!", "at most 65,536 bytes, got 65,537"),
        ("half \ud83d", "surrogate"),
    ],
    ids=["empty", "blank", "long", "surrogate"],
)
async def test_texts_that_cannot_be_are_refused_without_repeating_them(
    store: Store, text: str, complaint: str
) -> None:
    with pytest.raises(InvalidRequest, match=complaint) as refusal:
        await store.prompts.add(make_prompt(text=text))

    assert (refusal.value.code, refusal.value.param) == ("invalid_prompt", "text")
    assert len(refusal.value.message) < 100


@pytest.mark.parametrize(
    "fields",
    [
        {"priority": 1001},
        {"priority": -1001},
        {"ttl_s": 5.0},
        {"ttl_s": 0.0, "is_pinned": False},
        {"ttl_s": float("nan"), "is_pinned": False},
        {"ttl_s": 1e9, "is_pinned": False},
    ],
    ids=str,
)
async def test_numbers_out_of_range_are_refused(store: Store, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        await store.prompts.add(replace(make_prompt(), **fields))


async def test_the_longest_text_and_name_are_taken(store: Store) -> None:
    longest = make_prompt("n" * 64, "t" * 64, "x" * MAX_TEXT_BYTES)

    stored = await store.prompts.add(longest)

    assert await store.prompts.get("t" * 64, "n" * 64) == stored


async def test_a_tenant_has_a_bounded_number_of_prompts(store: Store) -> None:
    await add_many(store, "acme", MAX_PROMPTS_OF_TENANT)

    with pytest.raises(Conflict, match="64 prompts are registered for tenant 'acme'") as refusal:
        await store.prompts.add(make_prompt("one-more"))

    assert refusal.value.code == "too_many_prompts"

    await store.prompts.add(make_prompt("p0", text="replacing needs no room"))
    await store.prompts.add(make_prompt(tenant="acme2"))
    await store.prompts.add(make_preamble())
    assert len(await store.prompts.list("acme")) == MAX_PROMPTS_OF_TENANT


async def test_all_tenants_together_have_a_bounded_number_of_prompts(store: Store) -> None:
    for number in range(MAX_PROMPTS // MAX_PROMPTS_OF_TENANT):
        await add_many(store, f"t{number}", MAX_PROMPTS_OF_TENANT)

    with pytest.raises(Conflict, match="1024 prompts are registered in all"):
        await store.prompts.add(make_prompt())

    assert len(await store.prompts.list()) == MAX_PROMPTS


async def test_two_that_add_at_once_do_not_both_pass_the_limit(store: Store) -> None:
    await add_many(store, "acme", MAX_PROMPTS_OF_TENANT - 1)
    rivals = [store.prompts.add(make_prompt(f"rival{number}")) for number in range(8)]

    results = await asyncio.gather(*rivals, return_exceptions=True)

    assert sum(isinstance(result, NamedPrompt) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 7


# ── The bell ─────────────────────────────────────────────────────────────────────────────────


async def test_adding_replacing_and_removing_ring_the_bell(store: Store) -> None:
    cursors = ["0-0"]
    for change in (
        lambda: store.prompts.add(make_prompt()),
        lambda: store.prompts.add(make_prompt()),
        lambda: store.prompts.remove("acme", "support"),
    ):
        await change()
        cursors.append(await store.prompts.wait_for_change(cursors[-1], 5_000))

    assert len(set(cursors)) == 4


async def test_whoever_waits_is_woken(store: Store) -> None:
    waiting = asyncio.create_task(store.prompts.wait_for_change("0-0", 60_000))

    await store.prompts.add(make_prompt())

    async with asyncio.timeout(10):
        assert await waiting != "0-0"


async def test_without_a_change_the_wait_ends_with_its_cursor(store: Store) -> None:
    await store.prompts.add(make_prompt())
    cursor = await store.prompts.wait_for_change("0-0", BLOCK_MS)

    assert not await store.prompts.remove("acme", "unknown")

    assert await store.prompts.wait_for_change(cursor, BLOCK_MS) == cursor


async def test_the_bell_keeps_one_entry_and_runs_out(store: Store) -> None:
    for _ in range(5):
        await store.prompts.add(make_prompt())

    assert await store.commands.call("XLEN", keys.GLOBAL.key(keys.PROMPT_BELL)) == 1
    assert (
        0 < await store.commands.call("TTL", keys.GLOBAL.key(keys.PROMPT_BELL)) <= keys.IDLE_TTL_S
    )
