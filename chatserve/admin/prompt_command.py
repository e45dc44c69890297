"""`chatserve prompt`: what an operator does with the registry of prompts.

Owns the actions, what they print, and how long `add` waits for the workers. The registry's rules
and bounds are the store's.
"""

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from chatserve.admin.prompt_config import PromptConfig
from chatserve.admin.prompt_reports import PromptReport, in_words, read_reports, title_of
from chatserve.admin.prompt_table import as_json, as_table
from chatserve.admin.store_access import open_service_store
from chatserve.engine.api import DEFAULT_TENANT
from chatserve.errors import ConfigError, Conflict, InvalidRequest, NotFound
from chatserve.store.connection import Store
from chatserve.store.prompts import MAX_TEXT_BYTES, PREAMBLE_NAME, PUBLIC_TENANT, NamedPrompt

WAIT_S = 600.0
_POLL_S = 0.1

EXIT_NOT_KEPT = 1


@dataclass(frozen=True, slots=True)
class Console:
    """Where results go, and where the way to them is shown."""

    out: TextIO
    progress: TextIO


async def run_prompt_command(
    config: PromptConfig, console: Console, *, wait_s: float = WAIT_S
) -> int:
    """Do what was asked and return the exit code.

    Raises:
        ConfigError: A name or text is not allowed, or the file cannot be read.
        NotFound, Conflict: There is no such prompt, or there are too many.
        StoreError: The store does not answer.
    """
    text = _read_text(config.file) if config.file is not None else ""
    store = await open_service_store(config.redis_url, config.data_dir)
    try:
        match config.action:
            case "add":
                return await _add(store, config, text, console, wait_s)
            case "show":
                return await _show(store, config, console)
            case "remove":
                return await _remove(store, config, console)
            case _:
                return await _list(store, config, console)
    finally:
        await store.aclose()


async def _list(store: Store, config: PromptConfig, console: Console) -> int:
    tenant = PUBLIC_TENANT if config.is_public else config.tenant
    rows = await read_reports(store, await store.prompts.list(tenant))
    console.out.write(as_json(rows) if config.as_json else as_table(rows))
    return 0


async def _show(store: Store, config: PromptConfig, console: Console) -> int:
    tenant, name = _owner(config)
    prompt = await store.prompts.get(tenant, name)
    if prompt is None:
        raise _no_prompt(tenant, name)
    (report,) = await read_reports(store, [prompt])
    _write_lines(console.progress, [_settings(prompt), *in_words(report.workers)])
    _write_lines(console.out, [prompt.text])
    return 0


async def _remove(store: Store, config: PromptConfig, console: Console) -> int:
    tenant, name = _owner(config)
    if not await store.prompts.remove(tenant, name):
        raise _no_prompt(tenant, name)
    _write_lines(console.out, [f"removed {title_of(NamedPrompt(tenant, name, ''))}"])
    return 0


async def _add(
    store: Store, config: PromptConfig, text: str, console: Console, wait_s: float
) -> int:
    tenant, name = _owner(config)
    prompt = NamedPrompt(
        tenant, name, text, config.is_pinned, priority=config.priority, ttl_s=config.ttl_s
    )
    try:
        prompt = await store.prompts.add(prompt)
    except InvalidRequest as error:
        raise ConfigError(error.message) from error
    _write_lines(console.out, [f"registered {title_of(prompt)}"])
    if not config.waits:
        return 0
    report = await _wait_for_workers(store, prompt, console.progress, wait_s)
    if not report.workers:
        _write_lines(console.out, ["no worker is running; the first to start computes it"])
    _write_lines(console.out, in_words(report.workers))
    if not all(worker.is_final for worker in report.workers):
        _write_lines(console.progress, [f"not every worker has computed it within {wait_s:g} s"])
        return EXIT_NOT_KEPT
    return EXIT_NOT_KEPT if any(worker.is_refusal for worker in report.workers) else 0


async def _wait_for_workers(
    store: Store, prompt: NamedPrompt, progress: TextIO, wait_s: float
) -> PromptReport:
    """Return what every live worker has made of a prompt, or what it says when the time is up.

    Raises:
        Conflict: The prompt was removed or replaced meanwhile.
    """
    clock = asyncio.get_running_loop().time
    deadline, shown = clock() + wait_s, [""]
    while True:
        current = await store.prompts.get(prompt.tenant, prompt.name)
        if current is None or current.revision != prompt.revision:
            what = "removed" if current is None else "replaced"
            raise Conflict(f"{title_of(prompt)} was {what} while its workers computed it")
        (report,) = await read_reports(store, [prompt])
        if all(worker.is_final for worker in report.workers) or clock() > deadline:
            return report
        lines = in_words(report.workers)
        if lines != shown:
            _write_lines(progress, lines)
            shown = lines
        await asyncio.sleep(_POLL_S)


def _owner(config: PromptConfig) -> tuple[str, str]:
    """Return the tenant and the name that a command is about."""
    if config.is_public:
        return PUBLIC_TENANT, config.name or PREAMBLE_NAME
    assert config.name is not None, "a config without a name is public"
    return config.tenant or DEFAULT_TENANT, config.name


def _read_text(file: str) -> str:
    """Return a file's text without the line end that editors put behind the last line."""
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(MAX_TEXT_BYTES + 3)
        else:
            with Path(file).open("rb") as source:
                raw = source.read(MAX_TEXT_BYTES + 3)
        text = raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--file {file}: {error}") from error
    return text.removesuffix("\n").removesuffix("\r")


def _write_lines(stream: TextIO, lines: Iterable[str]) -> None:
    stream.write("".join(f"{line}\n" for line in lines))
    stream.flush()


def _settings(prompt: NamedPrompt) -> str:
    kept = "pinned" if prompt.is_pinned else "not pinned"
    expiry = "" if prompt.ttl_s is None else f", forgotten when unused for {prompt.ttl_s:g} s"
    return f"{title_of(prompt)}: {kept}, priority {prompt.priority}{expiry}"


def _no_prompt(tenant: str, name: str) -> NotFound:
    title = title_of(NamedPrompt(tenant, name, ""))
    return NotFound(f"there is no prompt {title}" if tenant else "there is no preamble")
