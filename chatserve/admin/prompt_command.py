"""`chatserve prompt`: what an operator does with the registry of prompts.

Owns the actions, what they print, and how long `add` waits for the workers. The registry's rules
and bounds are the store's.
"""

import asyncio
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from chatserve.admin.output import write_text
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
        OutputError: The console cannot be written.
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
    write_text(console.out, as_json(rows) if config.as_json else as_table(rows))
    return 0


async def _show(store: Store, config: PromptConfig, console: Console) -> int:
    tenant, name = _owner(config)
    prompt = await store.prompts.get(tenant, name)
    if prompt is None:
        raise _no_prompt(tenant, name)
    (report,) = await read_reports(store, [prompt])
    _write_lines(console.progress, [_settings(prompt), *in_words(report), ""])
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
    if tenant not in (PUBLIC_TENANT, DEFAULT_TENANT):
        note = f"note: no request can be of tenant {tenant!r} yet: there are no keys"
        _write_lines(console.progress, [note])
    return await _outcome(store, prompt, console, wait_s) if config.waits else 0


async def _outcome(store: Store, prompt: NamedPrompt, console: Console, wait_s: float) -> int:
    """Tell what every worker has made of a prompt, and return the exit code."""
    report = await _wait_for_workers(store, prompt, console.progress, wait_s)
    if not report.workers:
        _write_lines(console.out, ["no worker is running; the first to start computes it"])
    _write_lines(console.out, in_words(report))
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
        lines = in_words(report)
        if lines != shown:
            _write_lines(progress, lines)
            shown = lines
        await asyncio.sleep(_POLL_S)


def _owner(config: PromptConfig) -> tuple[str, str]:
    """Return the tenant and the name that a command is about.

    Raises:
        ConfigError: The preamble is called by another name than its own.
    """
    if config.is_public:
        if config.name not in (None, PREAMBLE_NAME):
            raise ConfigError(
                f"--public: the preamble is called {PREAMBLE_NAME!r}, got {config.name[:80]!r}"
            )
        return PUBLIC_TENANT, PREAMBLE_NAME
    assert config.name is not None, "a config without a name is public"
    return config.tenant or DEFAULT_TENANT, config.name


def _read_text(file: str) -> str:
    """Return a file's text without what editors add: a byte order mark, and the last line end."""
    raw = _read_bytes(file, len(BOM_UTF8) + MAX_TEXT_BYTES + len("\r\n") + 1)
    raw = raw.removeprefix(BOM_UTF8)
    if len(raw) > MAX_TEXT_BYTES + len("\r\n"):  # cut, perhaps within a character
        raise ConfigError(f"text: must have at most {MAX_TEXT_BYTES:,} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        source = "the standard input" if file == "-" else file
        raise ConfigError(f"--file: {source} is not UTF-8 text") from error
    return text.removesuffix("\n").removesuffix("\r")


def _read_bytes(file: str, max_bytes: int) -> bytes:
    """Return the beginning of a file, or of the standard input for a dash."""
    if file == "-":
        if sys.stdin is None:
            raise ConfigError("--file: the standard input is closed")
        return sys.stdin.buffer.read(max_bytes)
    try:
        with Path(file).open("rb") as source:
            return source.read(max_bytes)
    except FileNotFoundError as error:
        raise ConfigError(f"--file: there is no file {file}") from error
    except OSError as error:
        raise ConfigError(f"--file: {file} cannot be read: {error.strerror}") from error


def _write_lines(stream: TextIO, lines: Iterable[str]) -> None:
    write_text(stream, "".join(f"{line}\n" for line in lines))


def _settings(prompt: NamedPrompt) -> str:
    """Return what was asked for, which is not what the workers have made of it."""
    if prompt.is_pinned:
        return f"{title_of(prompt)}: to be pinned"
    expiry = "" if prompt.ttl_s is None else f", dropped when unused for {prompt.ttl_s:g} s"
    return f"{title_of(prompt)}: to be cached, priority {prompt.priority}{expiry}"


def _no_prompt(tenant: str, name: str) -> NotFound:
    title = title_of(NamedPrompt(tenant, name, ""))
    return NotFound(f"there is no prompt {title}" if tenant else "there is no preamble")
