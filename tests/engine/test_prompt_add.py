"""`chatserve prompt add`: what it registers, and how it waits for the workers."""

import asyncio
import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from engine.prompt_helpers import PinningEngine, pinning_worker
from engine.prompt_terminal import SIZE, TEXT, Terminal, beat_in_silence

from chatserve.engine.api import PrefixState
from chatserve.errors import ConfigError, Conflict
from chatserve.store.connection import Store
from chatserve.store.named_prompt import MAX_TEXT_BYTES, NamedPrompt
from chatserve.store.prompt_news import PromptStatus


async def test_add_tells_what_the_worker_made_of_it(store: Store, terminal: Terminal) -> None:
    async with pinning_worker(store):
        code = await terminal.add("support", "--tenant", "acme")

    stored = await store.prompts.get("acme", "support")
    assert stored is not None
    assert code == 0
    assert (stored.text, stored.is_pinned, stored.priority) == (TEXT, True, 0)
    assert terminal.out.getvalue() == (
        f"registered 'support' of tenant 'acme', version 1\necho: pinned, {SIZE}\n"
    )


async def test_add_that_is_refused_tells_the_sizes_and_fails(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store, PinningEngine(tenant_pinned_pages=2)):
        code = await terminal.add("support")

    assert code == 1
    assert terminal.out.getvalue().endswith(
        "echo: not pinned: it needs 4 more pages, with 2 left of 2 that a tenant may pin\n"
    )


async def test_add_without_a_worker_says_that_it_will_be_computed(
    store: Store, terminal: Terminal
) -> None:
    code = await terminal.add("support")

    assert code == 0
    assert terminal.out.getvalue().endswith(
        "no worker is running; the first to start computes it\n"
    )
    assert await store.prompts.get("default", "support") is not None


async def test_add_tells_of_several_workers_in_one_line_if_they_agree(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store, worker_id="w1"), pinning_worker(store, worker_id="w2"):
        code = await terminal.add("support", "--no-pin", "--priority", "-4", "--ttl", "60")

    stored = await store.prompts.get("default", "support")
    assert stored is not None
    assert (stored.is_pinned, stored.priority, stored.ttl_s) == (False, -4, 60.0)
    assert code == 0
    assert terminal.out.getvalue().endswith(f"echo: cached, {SIZE} (2 workers)\n")


async def test_add_tells_that_a_prefix_came_from_disk(
    store: Store, terminal: Terminal, tmp_path: Path
) -> None:
    settings = PinningEngine(tmp_path / "prefixes")
    async with pinning_worker(store, settings):
        await terminal.add("support")
    async with pinning_worker(store, settings, "w2"):
        await terminal.add("support")

    assert f"echo: pinned, {SIZE}, restored from disk\n" in terminal.out.getvalue()


async def test_add_waits_no_longer_than_it_should(store: Store, terminal: Terminal) -> None:
    await beat_in_silence(store, "silent")

    code = await terminal.add("support", wait_s=0.0)

    assert code == 1
    assert "echo: not heard of yet" in terminal.out.getvalue()
    assert "not every worker has computed it within 0 s" in terminal.progress.getvalue()


async def test_add_shows_how_far_it_is_while_it_waits(store: Store, terminal: Terminal) -> None:
    await beat_in_silence(store, "slow")
    adding = asyncio.create_task(terminal.add("support"))
    while "not heard of yet" not in terminal.progress.getvalue():  # noqa: ASYNC110 - it is text
        await asyncio.sleep(0.005)
    (prompt,) = await store.prompts.list()
    warming = PromptStatus("default", "support", prompt.revision, PrefixState.WARMING, 1, 85, 6)
    await store.prompt_news.write("slow", [warming], 60_000)
    while "warming, 85 tokens" not in terminal.progress.getvalue():  # noqa: ASYNC110
        await asyncio.sleep(0.005)

    await store.prompt_news.write("slow", [replace(warming, state=PrefixState.PINNED)], 60_000)

    assert await adding == 0


async def test_add_does_not_wait_when_told_so(store: Store, terminal: Terminal) -> None:
    await beat_in_silence(store, "silent")

    code = await terminal.add("support", "--no-wait")

    assert code == 0
    assert terminal.out.getvalue() == "registered 'support' of tenant 'default', version 1\n"


@pytest.mark.parametrize("what", ["replaced", "removed"])
async def test_add_ends_when_the_prompt_changes_under_it(
    store: Store, terminal: Terminal, what: str
) -> None:
    await beat_in_silence(store, "silent")
    adding = asyncio.create_task(terminal.add("support"))
    while not await store.prompts.list():  # noqa: ASYNC110 - the command has no event
        await asyncio.sleep(0.005)

    if what == "removed":
        await store.prompts.remove("default", "support")
    else:
        await store.prompts.add(NamedPrompt("default", "support", "another"))

    with pytest.raises(Conflict, match=f"'support' of tenant 'default' was {what}"):
        await adding


async def test_public_prompt_is_the_preamble(store: Store, terminal: Terminal) -> None:
    async with pinning_worker(store):
        code = await terminal.run("add", "--public", "--file", terminal.file(TEXT))

    preamble = await store.prompts.get("", "preamble")
    assert code == 0
    assert preamble is not None
    assert preamble.text == TEXT
    assert terminal.out.getvalue().startswith("registered the preamble, version 1\necho: pinned, ")


async def test_a_preamble_that_cannot_be_pinned_is_in_force_all_the_same(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store, PinningEngine(max_pinned_pages=2)):
        code = await terminal.run("add", "--public", "--file", terminal.file(TEXT))

    assert code == 1
    assert "echo: not pinned; in force, but not kept computed: it needs 4 more pages" in (
        terminal.out.getvalue()
    )
    assert await store.prompts.get("", "preamble") is not None


@pytest.mark.parametrize(
    ("end", "kept"), [("", ""), ("\n", ""), ("\r\n", ""), ("\n\n", "\n"), (" ", " ")], ids=repr
)
async def test_the_line_end_behind_the_last_line_is_not_part_of_the_text(
    store: Store, terminal: Terminal, end: str, kept: str
) -> None:
    await terminal.add("support", text=TEXT + end)

    stored = await store.prompts.get("default", "support")
    assert stored is not None
    assert stored.text == TEXT + kept


async def test_the_text_can_come_from_standard_input(
    store: Store, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))

    await terminal.run("add", "support", "--file", "-")

    stored = await store.prompts.get("default", "support")
    assert stored is not None
    assert stored.text == TEXT


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("support", b"half \xff", "--file: .*prompt.txt is not UTF-8 text"),
        ("support", b"", "text: must not be empty"),
        ("support", b"x" * (MAX_TEXT_BYTES + 100), "text: must have at most 65,536 bytes"),
        ("support", "é".encode() * MAX_TEXT_BYTES, "text: must have at most 65,536 bytes"),
        ("a/b", b"x", "name: must be up to 64 letters"),
    ],
    ids=["not-utf8", "empty", "long", "long-and-cut-in-a-character", "name"],
)
async def test_what_cannot_be_registered_is_a_bad_setting(
    store: Store, terminal: Terminal, name: str, content: bytes, complaint: str
) -> None:
    path = terminal.folder / "prompt.txt"
    path.write_bytes(content)

    with pytest.raises(ConfigError, match=complaint):
        await terminal.run("add", name, "--file", str(path))

    assert await store.prompts.list() == []


async def test_a_file_that_is_not_there_is_named(terminal: Terminal) -> None:
    with pytest.raises(ConfigError, match="there is no file /no/such/file"):
        await terminal.run("add", "support", "--file", "/no/such/file")
