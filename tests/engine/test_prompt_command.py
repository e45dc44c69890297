"""`chatserve prompt` list, show and remove on a real store, and how the store is found."""

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest
from engine.prompt_helpers import WORKER_ID, PinningEngine, pinning_worker, status_of
from engine.prompt_terminal import TEXT, Terminal, beat_in_silence
from gateway.fake_model import MODEL

from chatserve.admin.output import Console
from chatserve.admin.prompt_command import run_prompt_command
from chatserve.admin.prompt_config import PromptConfig
from chatserve.engine.api import PrefixState
from chatserve.errors import ConfigError, NotFound, StoreError
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.named_prompt import MAX_TEXT_BYTES, NamedPrompt
from chatserve.store.prompt_news import PromptStatus
from chatserve.store.tenants import Tenant


async def test_list_is_a_table_with_a_line_for_each_prompt_and_state(
    store: Store, terminal: Terminal
) -> None:
    short, long = NamedPrompt("acme", "support", TEXT), NamedPrompt("acme", "manual", TEXT * 9)
    async with pinning_worker(store, PinningEngine(tenant_pinned_pages=8)):
        for prompt in (NamedPrompt("", "preamble", "Be kind."), long, short):
            await status_of(store, await store.prompts.add(prompt))
        code = await terminal.run("list")

    assert code == 0
    assert terminal.out.getvalue().splitlines() == [
        "TENANT  NAME      VERSION  MODEL  STATE       TOKENS  PAGES  WORKERS",
        "(all)   preamble  1        echo   pinned      16      1      1",
        "acme    manual    1        echo   not pinned  449     29     1",
        "    it needs 28 more pages, with 8 left of 8 that a tenant may pin",
        "acme    support   1        echo   pinned      73      5      1",
    ]


async def test_list_without_a_worker_tells_what_is_registered(
    store: Store, terminal: Terminal
) -> None:
    await store.prompts.add(NamedPrompt("acme", "support", TEXT))
    await store.prompts.add(NamedPrompt("zeta", "support", TEXT))

    await terminal.run("list", "--tenant", "acme")

    assert terminal.out.getvalue().splitlines() == [
        "TENANT  NAME     VERSION  MODEL  STATE       TOKENS  PAGES  WORKERS",
        "acme    support  1        -      registered  -       -      0",
    ]


async def test_list_of_a_tenant_that_is_not_there_is_an_error(
    store: Store, terminal: Terminal
) -> None:
    await store.tenants.add(Tenant("acme"))

    assert await terminal.run("list", "--tenant", "acme") == 0
    with pytest.raises(NotFound, match="no tenant 'nobody'"):
        await terminal.run("list", "--tenant", "nobody")


async def test_list_is_json_for_programs_and_holds_no_text(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store):
        prompt = await store.prompts.add(NamedPrompt("acme", "support", TEXT))
        await status_of(store, prompt)
        await terminal.run("list", "--json")

    (document,) = json.loads(terminal.out.getvalue())
    (worker,) = document["workers"]
    assert document["num_bytes"] == len(TEXT.encode())
    assert "text" not in document
    assert (document["tenant"], document["name"], document["is_pinned"]) == (
        "acme",
        "support",
        True,
    )
    assert (worker["worker_id"], worker["model"]) == (WORKER_ID, MODEL)
    assert worker["status"]["state"] == "pinned"
    assert worker["status"]["num_pages"] == 4


async def test_a_reason_from_a_strangers_template_cannot_steer_the_terminal(
    store: Store, terminal: Terminal
) -> None:
    prompt = await store.prompts.add(NamedPrompt("acme", "support", TEXT))
    await beat_in_silence(store, "w")
    refused = PromptStatus(
        "acme", "support", prompt.revision, PrefixState.REFUSED, 1, reason="a\x1b[2Jb\nc"
    )
    await store.prompt_news.write("w", [refused], 60_000)

    await terminal.run("list")

    assert terminal.out.getvalue().splitlines()[2] == "    a [2Jb c"


async def test_show_prints_the_text_alone_to_standard_output(
    store: Store, terminal: Terminal
) -> None:
    await store.prompts.add(NamedPrompt("acme", "support", TEXT, False, ttl_s=60.0))

    await terminal.run("show", "support", "--tenant", "acme")

    assert terminal.out.getvalue() == f"{TEXT}\n"
    assert terminal.progress.getvalue() == (
        "'support' of tenant 'acme': to be cached, priority 0, dropped when unused for 60 s\n"
        "version 1, current\n\n"
    )


async def test_show_prints_utf_8_whatever_the_locale_is(store: Store, terminal: Terminal) -> None:
    await store.prompts.add(NamedPrompt("default", "support", "café 📚"))
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="ascii")
    config = PromptConfig("show", "support", redis_url=terminal.url)

    await run_prompt_command(config, Console(out, io.StringIO()))

    assert written.getvalue() == "café 📚\n".encode()


async def test_a_single_page_is_told_in_the_singular(store: Store, terminal: Terminal) -> None:
    async with pinning_worker(store):
        await status_of(store, await store.prompts.add(NamedPrompt("", "preamble", "Be kind.")))
        await terminal.run("show", "--public")

    assert "echo: pinned, 16 tokens in 1 page\n" in terminal.progress.getvalue()


@pytest.mark.parametrize("num_bytes", [4, MAX_TEXT_BYTES])
async def test_a_byte_order_mark_is_not_part_of_the_prompt(
    store: Store, terminal: Terminal, num_bytes: int
) -> None:
    await terminal.add("support", text="\ufeff" + "x" * num_bytes + "\r\n")

    stored = await store.prompts.get("default", "support")
    assert stored is not None
    assert stored.text == "x" * num_bytes


async def test_show_tells_what_was_asked_for_and_what_the_worker_made_of_it(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store, PinningEngine(tenant_pinned_pages=2)):
        await status_of(store, await store.prompts.add(NamedPrompt("acme", "support", TEXT)))
        await terminal.run("show", "support", "--tenant", "acme")

    assert terminal.progress.getvalue() == (
        "'support' of tenant 'acme': to be pinned\n"
        "version 1, current\n"
        "echo: not pinned: it needs 4 more pages, "
        "with 2 left of 2 that a tenant may pin\n\n"
    )


async def test_list_tells_of_a_preamble_that_is_in_force_and_not_pinned(
    store: Store, terminal: Terminal
) -> None:
    async with pinning_worker(store, PinningEngine(max_pinned_pages=2)):
        await status_of(store, await store.prompts.add(NamedPrompt("", "preamble", TEXT)))
        await terminal.run("list", "--public")

    _, line, note = terminal.out.getvalue().splitlines()
    assert line.startswith("(all)   preamble  1        echo   not pinned  ")
    assert note.startswith("    in force, but not kept computed: it needs 4 more pages")


async def test_remove_takes_the_prompt_of_the_named_tenant_only(
    store: Store, terminal: Terminal
) -> None:
    await store.prompts.add(NamedPrompt("acme", "support", TEXT))
    await store.prompts.add(NamedPrompt("default", "support", TEXT))

    await terminal.run("remove", "support")

    assert [prompt.tenant for prompt in await store.prompts.list()] == ["acme"]
    assert terminal.out.getvalue() == "removed 'support' of tenant 'default'\n"


@pytest.mark.parametrize("action", ["show", "remove"])
async def test_what_is_not_registered_is_not_found(terminal: Terminal, action: str) -> None:
    with pytest.raises(NotFound, match="there is no prompt 'x' of tenant 'default'"):
        await terminal.run(action, "x")
    with pytest.raises(NotFound, match="there is no preamble"):
        await terminal.run(action, "--public")


@pytest.mark.parametrize("action", ["show", "remove"])
async def test_the_preamble_goes_by_no_other_name(
    store: Store, terminal: Terminal, action: str
) -> None:
    await store.prompts.add(NamedPrompt("", "preamble", TEXT))

    with pytest.raises(ConfigError, match="the preamble is called 'preamble', got 'support'"):
        await terminal.run(action, "support", "--public")

    assert await store.prompts.get("", "preamble") is not None
    assert await terminal.run(action, "preamble", "--public") == 0


# ── Which store ──────────────────────────────────────────────────────────────────────────────


async def test_the_bundled_store_of_a_running_service_is_found_by_its_data_folder(
    tmp_path: Path,
) -> None:
    server = EmbeddedServer(tmp_path / "store")
    await server.start()
    command = [sys.executable, "-m", "chatserve", "prompt", "add", "support"]
    command += ["--file", "-", "--data-dir", str(tmp_path)]

    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate(TEXT.encode())

    store = await open_store(server.url)
    prompts = await store.prompts.list()
    await store.aclose()
    await server.stop()
    assert process.returncode == 0
    assert printed.decode().startswith("registered 'support' of tenant 'default', version 1\n")
    assert [prompt.text for prompt in prompts] == [TEXT]


async def test_without_a_running_service_one_line_says_what_to_do(tmp_path: Path) -> None:
    config = PromptConfig(data_dir=tmp_path)

    with pytest.raises(StoreError, match=r"no `chatserve serve` .* or name the store by"):
        await run_prompt_command(config, Console(io.StringIO(), io.StringIO()))
