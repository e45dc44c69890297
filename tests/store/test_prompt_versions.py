"""Versions of registered prompts, their variables, and how a prompt's settings change."""

import asyncio
import secrets
from dataclasses import replace

import pytest

from chatserve.errors import Conflict, InvalidRequest
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.named_prompt import NamedPrompt, parse_version
from chatserve.store.prompts import MAX_VERSIONS
from chatserve.text.variables import MAX_VALUE_CHARS, MAX_VARIABLES

BLOCK_MS = 20


def make_prompt(text: str = "text", **defaults: str) -> NamedPrompt:
    return NamedPrompt("acme", "support", text, defaults=defaults)


async def add_versions(store: Store, *texts: str) -> list[NamedPrompt]:
    return [await store.prompts.add(make_prompt(text)) for text in texts]


async def numbers(store: Store) -> list[int]:
    return [prompt.version for prompt in await store.prompts.versions("acme", "support")]


# ── Versions ─────────────────────────────────────────────────────────────────────────────────


async def test_every_version_can_be_asked_for_by_its_number(store: Store) -> None:
    first, second = await add_versions(store, "one", "two")

    assert await store.prompts.get("acme", "support", 1) == first
    assert await store.prompts.get("acme", "support", 2) == second
    assert await store.prompts.get("acme", "support") == second
    assert await store.prompts.get("acme", "support", 3) is None
    assert await store.prompts.versions("acme", "support") == [first, second]


async def test_the_last_versions_are_kept_and_no_others(store: Store) -> None:
    await add_versions(store, *(f"text {n}" for n in range(1, MAX_VERSIONS + 4)))

    assert await numbers(store) == list(range(4, MAX_VERSIONS + 4))
    assert await store.prompts.get("acme", "support", 3) is None


async def test_versions_of_one_prompt_are_not_those_of_another(store: Store) -> None:
    await add_versions(store, "one", "two")

    theirs = await store.prompts.add(replace(make_prompt(), tenant="zeta"))

    assert theirs.version == 1
    assert await store.prompts.versions("zeta", "support") == [theirs]
    assert await store.prompts.get("zeta", "support", 2) is None


async def test_an_older_version_can_be_made_current_again(store: Store) -> None:
    first, second = await add_versions(store, "one", "two")

    back = await store.prompts.activate("acme", "support", 1)

    assert back == await store.prompts.get("acme", "support")
    assert back is not None
    assert replace(back, revision=first.revision) == first
    assert back.revision not in (first.revision, second.revision)
    assert await numbers(store) == [1, 2]


async def test_the_version_after_an_older_one_was_activated_has_a_fresh_number(
    store: Store,
) -> None:
    await add_versions(store, "one", "two")
    await store.prompts.activate("acme", "support", 1)

    (third,) = await add_versions(store, "three")

    assert third.version == 3
    assert await store.prompts.get("acme", "support") == third


async def test_a_version_that_is_activated_takes_the_prompts_settings(store: Store) -> None:
    await add_versions(store, "one", "two")
    await store.prompts.configure("acme", "support", is_pinned=False, priority=3, ttl_s=9.0)

    back = await store.prompts.activate("acme", "support", 1)

    assert back is not None
    assert (back.text, back.is_pinned, back.priority, back.ttl_s) == ("one", False, 3, 9.0)


@pytest.mark.parametrize("name", ["support", "other"])
async def test_what_is_not_kept_is_not_activated(store: Store, name: str) -> None:
    (only,) = await add_versions(store, "one")

    assert await store.prompts.activate("acme", name, 2) is None

    assert await store.prompts.list() == [only]


async def test_an_old_version_is_removed_and_its_number_not_given_again(store: Store) -> None:
    await add_versions(store, "one", "two")
    await store.prompts.activate("acme", "support", 1)

    assert await store.prompts.remove_version("acme", "support", 2)
    assert not await store.prompts.remove_version("acme", "support", 2)
    (third,) = await add_versions(store, "three")

    assert third.version == 3
    assert await numbers(store) == [1, 3]


async def test_the_current_version_is_not_removed_alone(store: Store) -> None:
    await add_versions(store, "one", "two")

    with pytest.raises(Conflict, match="version 2 is current"):
        await store.prompts.remove_version("acme", "support", 2)

    assert await numbers(store) == [1, 2]


async def test_a_prompt_that_keeps_changing_is_a_conflict(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_versions(store, "one", "two")
    get = store.prompts.get

    async def get_and_change(
        tenant: str, name: str, version: int | None = None
    ) -> NamedPrompt | None:
        found = await get(tenant, name, version)
        await add_versions(store, "another")
        return found

    monkeypatch.setattr(store.prompts, "get", get_and_change)

    with pytest.raises(Conflict) as refusal:
        await store.prompts.activate("acme", "support", 1)

    assert refusal.value.code == "prompt_changed"


async def test_a_removed_prompt_takes_its_versions_along(store: Store) -> None:
    await add_versions(store, "one", "two")

    await store.prompts.remove("acme", "support")

    assert await numbers(store) == []
    assert await store.prompts.get("acme", "support", 1) is None
    kept = await store.commands.call("KEYS", "*prompt*")
    assert kept == [keys.GLOBAL.key(keys.PROMPT_BELL)]


async def test_many_that_add_at_once_get_a_number_each(store: Store) -> None:
    added = await asyncio.gather(*(store.prompts.add(make_prompt(f"{n}")) for n in range(12)))

    current = await store.prompts.get("acme", "support")
    assert sorted(prompt.version for prompt in added) == list(range(1, 13))
    assert current is not None
    assert current.version == 12
    assert {prompt.version: prompt.text for prompt in added} == {
        prompt.version: prompt.text for prompt in await store.prompts.versions("acme", "support")
    }


async def test_a_call_whose_reply_was_lost_makes_no_second_version(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _num_bytes: "the same call")

    numbers_given = [(await store.prompts.add(make_prompt())).version for _ in range(2)]

    assert numbers_given == [1, 1]
    assert await numbers(store) == [1]


async def test_activating_and_adding_at_once_leave_one_of_both_current(store: Store) -> None:
    await add_versions(store, "one", "two")
    changes = [store.prompts.activate("acme", "support", 1) for _ in range(2)]

    await asyncio.gather(*changes, store.prompts.add(make_prompt("three")))

    current = await store.prompts.get("acme", "support")
    assert current is not None
    assert (current.version, current.text) in [(1, "one"), (3, "three")]
    assert await numbers(store) == [1, 2, 3]


async def test_activating_and_removing_an_old_version_ring_the_bell(store: Store) -> None:
    await add_versions(store, "one", "two")
    cursors = [await store.prompts.wait_for_change("0-0", 5_000)]

    for change in (
        lambda: store.prompts.activate("acme", "support", 1),
        lambda: store.prompts.configure("acme", "support", is_pinned=False),
        lambda: store.prompts.remove_version("acme", "support", 2),
    ):
        await change()
        cursors.append(await store.prompts.wait_for_change(cursors[-1], 5_000))

    assert len(set(cursors)) == 4


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("20", 20), ("0", None), ("01", None), ("-1", None), ("", None), ("²", None)],
)
def test_a_version_is_a_number_from_one_on(text: str, number: int | None) -> None:
    assert parse_version(text) == number


# ── Settings ─────────────────────────────────────────────────────────────────────────────────


async def test_settings_change_without_a_new_version(store: Store) -> None:
    (added,) = await add_versions(store, "one")

    loose = await store.prompts.configure("acme", "support", is_pinned=False, ttl_s=60.0)
    urgent = await store.prompts.configure("acme", "support", priority=5)

    assert loose is not None
    assert urgent is not None
    assert (loose.is_pinned, loose.ttl_s, loose.version) == (False, 60.0, 1)
    assert (urgent.is_pinned, urgent.ttl_s, urgent.priority) == (False, 60.0, 5)
    assert len({added.revision, loose.revision, urgent.revision}) == 3
    assert await store.prompts.get("acme", "support") == urgent


async def test_a_prompt_that_is_pinned_again_is_not_dropped_when_unused(store: Store) -> None:
    await store.prompts.add(replace(make_prompt(), is_pinned=False, ttl_s=60.0))

    pinned = await store.prompts.configure("acme", "support", is_pinned=True)

    assert pinned is not None
    assert (pinned.is_pinned, pinned.ttl_s) == (True, None)


async def test_settings_that_cannot_be_are_refused(store: Store) -> None:
    (added,) = await add_versions(store, "one")

    with pytest.raises(InvalidRequest, match="ttl_s: must not be set for a pinned prompt"):
        await store.prompts.configure("acme", "support", ttl_s=60.0)

    assert await store.prompts.get("acme", "support") == added
    assert await store.prompts.configure("acme", "other", is_pinned=True) is None


# ── Variables ────────────────────────────────────────────────────────────────────────────────


async def test_defaults_belong_to_their_version(store: Store) -> None:
    await store.prompts.add(make_prompt("{{a}} {{b}}", a="x"))
    await store.prompts.add(make_prompt("{{b}}", b="y"))

    old = await store.prompts.get("acme", "support", 1)
    back = await store.prompts.activate("acme", "support", 1)

    assert old is not None
    assert back is not None
    assert (old.variables, old.defaults) == (("a", "b"), {"a": "x"})
    assert (back.variables, back.defaults) == (("a", "b"), {"a": "x"})


async def test_a_preamble_has_no_variables(store: Store) -> None:
    preamble = NamedPrompt("", "preamble", "{{a}}")

    stored = await store.prompts.add(preamble)

    assert stored.variables == ()
    with pytest.raises(InvalidRequest, match="variables: the preamble has none"):
        await store.prompts.add(replace(preamble, defaults={"a": "x"}))


@pytest.mark.parametrize(
    ("text", "defaults", "complaint"),
    [
        ("{{a}}", {"b": "x"}, "variables: a default for 'b', which the text has nowhere"),
        ("{{ a }}", {"a": "x"}, "variables: a default for 'a', which the text has nowhere"),
        ("{{a}}", {"a": "x" * (MAX_VALUE_CHARS + 1)}, "'a' must have at most 16,384 characters"),
        ("{{a}}", {"a": "\ud83d"}, "'a' must be Unicode"),
        (
            "".join(f"{{{{v{n}}}}}" for n in range(MAX_VARIABLES + 1)),
            {},
            "text: must have at most 64 variables, got 65",
        ),
    ],
    ids=["unknown", "blanks", "long", "surrogate", "many"],
)
async def test_variables_that_cannot_be_are_refused(
    store: Store, text: str, defaults: dict[str, str], complaint: str
) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        await store.prompts.add(make_prompt(text, **defaults))

    assert await store.prompts.list() == []
