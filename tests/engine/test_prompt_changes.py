"""`chatserve prompt` on prompts that are there: versions, variables, pin and unpin."""

import pytest
from engine.prompt_helpers import PinningEngine, pinning_worker
from engine.prompt_terminal import TEXT, Terminal

from chatserve.errors import ConfigError, Conflict, NotFound
from chatserve.store.connection import Store
from chatserve.store.tenants import Tenant

LETTER = "Dear {{name}}, greetings from {{city}}."


async def add_two(terminal: Terminal) -> None:
    """Register two versions, and forget what was printed about it."""
    await terminal.add("support", "--no-wait", text="one")
    await terminal.add("support", "--no-wait", text="two")
    terminal.out.truncate(0)
    terminal.out.seek(0)


async def test_adding_again_makes_the_next_version(store: Store, terminal: Terminal) -> None:
    await terminal.add("support", "--no-wait", text="one")

    await terminal.add("support", "--no-wait", text="two")

    assert terminal.out.getvalue().splitlines() == [
        "registered 'support' of tenant 'default', version 1",
        "registered 'support' of tenant 'default', version 2",
    ]


async def test_adding_for_a_tenant_that_is_not_there_is_noted(
    store: Store, terminal: Terminal
) -> None:
    await store.tenants.add(Tenant("acme"))

    for tenant in ("acme", "acne", "default"):
        await terminal.add("support", "--tenant", tenant, "--no-wait")

    assert terminal.progress.getvalue() == (
        "note: there is no tenant 'acne' yet; see `chatserve tenant add`\n"
    )


async def test_a_refused_prompt_that_is_pinned_again_is_tried_again(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store, PinningEngine(tenant_pinned_pages=4)):
        codes = [await terminal.add(name, text=name * 30) for name in ("a", "b")]
        await terminal.run("remove", "a")

        codes.append(await terminal.run("pin", "b"))

    assert codes == [0, 1, 0]


async def test_show_prints_the_version_asked_for_and_says_which_is_current(
    terminal: Terminal,
) -> None:
    await add_two(terminal)

    await terminal.run("show", "support", "--version", "1")

    assert terminal.out.getvalue() == "one\n"
    assert terminal.progress.getvalue() == "version 1; version 2 is current\n\n"


async def test_show_tells_variables_and_their_defaults(store: Store, terminal: Terminal) -> None:
    await terminal.add("letter", "--variable", "city=Köln = Cologne", "--no-wait", text=LETTER)

    await terminal.run("show", "letter")

    stored = await store.prompts.get("default", "letter")
    assert stored is not None
    assert stored.defaults == {"city": "Köln = Cologne"}
    assert "version 1, current; variables: name, city='Köln = Cologne'\n" in (
        terminal.progress.getvalue()
    )


async def test_a_default_for_a_variable_that_is_not_there_is_a_bad_setting(
    store: Store, terminal: Terminal
) -> None:
    with pytest.raises(ConfigError, match="a default for 'town', which the text has nowhere"):
        await terminal.add("letter", "--variable", "town=x", text=LETTER)

    assert await store.prompts.list() == []


async def test_activate_goes_back_and_waits_for_the_workers(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store):
        await add_two(terminal)

        code = await terminal.run("activate", "support", "--version", "1")

    current = await store.prompts.get("default", "support")
    assert current is not None
    assert (code, current.text) == (0, "one")
    assert terminal.out.getvalue().splitlines() == [
        "version 1 of 'support' of tenant 'default' is current",
        "echo: pinned, 19 tokens in 2 pages",
    ]


async def test_remove_takes_one_old_version_only(store: Store, terminal: Terminal) -> None:
    await add_two(terminal)

    await terminal.run("remove", "support", "--version", "1")

    assert [each.version for each in await store.prompts.versions("default", "support")] == [2]
    assert terminal.out.getvalue() == "removed version 1 of 'support' of tenant 'default'\n"


async def test_the_current_version_is_not_removed_alone(terminal: Terminal) -> None:
    await add_two(terminal)

    with pytest.raises(Conflict, match="version 2 is current: activate another one first"):
        await terminal.run("remove", "support", "--version", "2")


@pytest.mark.parametrize("action", ["show", "activate", "remove"])
async def test_a_version_that_is_not_kept_is_named(terminal: Terminal, action: str) -> None:
    await add_two(terminal)

    with pytest.raises(NotFound, match="no version 9 of 'support' of tenant 'default'"):
        await terminal.run(action, "support", "--version", "9")


async def test_unpin_and_pin_move_the_prompt_between_pinned_and_cached(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store) as engine:
        await terminal.add("support", text=TEXT)
        codes = [await terminal.run("unpin", "support", "--priority", "2", "--ttl", "60")]
        loose, num_loose = await store.prompts.get("default", "support"), engine.stats()
        codes.append(await terminal.run("pin", "support"))
        pinned, num_pinned = await store.prompts.get("default", "support"), engine.stats()

    assert codes == [0, 0]
    assert loose is not None
    assert pinned is not None
    assert (loose.is_pinned, loose.priority, loose.ttl_s) == (False, 2, 60.0)
    assert (pinned.is_pinned, pinned.ttl_s, pinned.version) == (True, None, 1)
    assert (num_loose.pages_pinned, num_pinned.pages_pinned) == (0, 4)
    assert terminal.out.getvalue().splitlines()[2:] == [
        "'support' of tenant 'default' is not pinned any more",
        "echo: cached, 63 tokens in 4 pages",
        "'support' of tenant 'default' is to be pinned",
        "echo: pinned, 63 tokens in 4 pages",
    ]


async def test_pin_that_finds_no_room_fails(store: Store, terminal: Terminal) -> None:
    async with pinning_worker(store, PinningEngine(tenant_pinned_pages=2)):
        await terminal.add("support", "--no-pin", text=TEXT)

        code = await terminal.run("pin", "support")

    assert code == 1
    assert terminal.out.getvalue().endswith("with 2 left of 2 that a tenant may pin\n")


@pytest.mark.parametrize("action", ["pin", "unpin"])
async def test_what_is_not_registered_is_not_pinned(terminal: Terminal, action: str) -> None:
    with pytest.raises(NotFound, match="there is no prompt 'x' of tenant 'default'"):
        await terminal.run(action, "x")
