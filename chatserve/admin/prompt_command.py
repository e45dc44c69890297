"""`chatserve prompt`: what an operator does with the registry of prompts.

Owns the actions and what they print. The registry's rules and bounds are the store's; how long an
action waits for the workers is said in `prompt_outcome.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chatserve.admin.output import Console, write_lines, write_text
from chatserve.admin.prompt_config import PromptConfig
from chatserve.admin.prompt_file import read_text
from chatserve.admin.prompt_outcome import outcome_of
from chatserve.admin.prompt_table import as_json, as_table
from chatserve.admin.prompt_words import in_words, settings_of, title_of, versions_of
from chatserve.admin.store_access import known_tenant, service_store
from chatserve.engine.api import DEFAULT_TENANT
from chatserve.errors import ConfigError, NotFound
from chatserve.store.connection import Store
from chatserve.store.named_prompt import PREAMBLE_NAME, PUBLIC_TENANT, NamedPrompt
from chatserve.store.prompt_reports import read_reports

WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
class _Command:
    """One run of the command: what was asked, of which store, for whom to see."""

    config: PromptConfig
    store: Store
    console: Console
    wait_s: float

    @property
    def owner(self) -> tuple[str, str]:
        """The tenant and the name that the command is about.

        Raises:
            ConfigError: The preamble is called by another name than its own.
        """
        config = self.config
        if config.is_public:
            if config.name not in (None, PREAMBLE_NAME):
                raise ConfigError(
                    f"--public: the preamble is called {PREAMBLE_NAME!r}, got {config.name[:80]!r}"
                )
            return PUBLIC_TENANT, PREAMBLE_NAME
        assert config.name is not None, "a config without a name is public"
        return config.tenant or DEFAULT_TENANT, config.name

    def missing(self) -> NotFound:
        """Return that there is no such prompt, or that it is not kept in the version asked for."""
        title = title_of(NamedPrompt(*self.owner, ""))
        if self.config.version is not None:
            return NotFound(f"there is no version {self.config.version} of {title}")
        return NotFound(f"there is no {'preamble' if self.config.is_public else f'prompt {title}'}")

    async def tell(self, line: str, prompt: NamedPrompt) -> int:
        """Write what was done, then what the workers make of it, and return the exit code."""
        write_lines(self.console.out, [line])
        if not self.config.waits:
            return 0
        return await outcome_of(self.store, prompt, self.console, self.wait_s)


async def run_prompt_command(
    config: PromptConfig, console: Console, *, wait_s: float = WAIT_S
) -> int:
    """Do what was asked and return the exit code.

    Raises:
        ConfigError: A name or text is not allowed, or the file cannot be read.
        NotFound, Conflict: There is no such prompt or version, there are too many, or it is in use.
        StoreError: The store does not answer.
        OutputError: The console cannot be written.
    """
    text = read_text(config.file) if config.file is not None else ""
    async with service_store(config.redis_url, config.data_dir) as store:
        command = _Command(config, store, console, wait_s)
        if config.action == "add":
            return await _add(command, text)
        return await _ACTIONS[config.action](command)


async def _list(command: _Command) -> int:
    config = command.config
    tenant = PUBLIC_TENANT if config.is_public else config.tenant
    prompts = await command.store.prompts.list(tenant)
    if not prompts and config.tenant not in (None, DEFAULT_TENANT):
        await known_tenant(command.store, config.tenant)
    rows = await read_reports(command.store, prompts)
    write_text(command.console.out, as_json(rows) if config.as_json else as_table(rows))
    return 0


async def _show(command: _Command) -> int:
    """Write a text, and to the side what is known of it."""
    tenant, name = command.owner
    current = await command.store.prompts.get(tenant, name)
    shown = current
    if current is not None and command.config.version not in (None, current.version):
        shown = await command.store.prompts.get(tenant, name, command.config.version)
    if current is None or shown is None:
        raise command.missing()
    lines = [versions_of(shown, current, await command.store.prompts.versions(tenant, name))]
    if shown.version == current.version:
        (report,) = await read_reports(command.store, [current])
        lines = [settings_of(current), *lines, *in_words(report)]
    write_lines(command.console.progress, [*lines, ""])
    write_lines(command.console.out, [shown.text])
    return 0


async def _remove(command: _Command) -> int:
    version, prompts = command.config.version, command.store.prompts
    title = title_of(NamedPrompt(*command.owner, ""))
    if version is None:
        is_removed = await prompts.remove(*command.owner)
    else:
        is_removed = await prompts.remove_version(*command.owner, version)
        title = f"version {version} of {title}"
    if not is_removed:
        raise command.missing()
    write_lines(command.console.out, [f"removed {title}"])
    return 0


async def _add(command: _Command, text: str) -> int:
    tenant, name = command.owner
    config = command.config
    prompt = NamedPrompt(
        tenant,
        name,
        text,
        config.is_pinned,
        priority=config.priority,
        ttl_s=config.ttl_s,
        defaults=dict(config.variables),
    )
    prompt = await command.store.prompts.add(prompt)
    if not prompt.is_preamble and tenant != DEFAULT_TENANT:
        await _note_missing_tenant(command, tenant)
    return await command.tell(f"registered {title_of(prompt)}, version {prompt.version}", prompt)


async def _note_missing_tenant(command: _Command, tenant: str) -> None:
    """Say that there is no such tenant yet, which may be what was meant, or a slip."""
    if await command.store.tenants.get(tenant) is None:
        note = f"note: there is no tenant {tenant!r} yet; see `chatserve tenant add`"
        write_lines(command.console.progress, [note])


async def _activate(command: _Command) -> int:
    assert command.config.version is not None, "a config without a version does not activate"
    prompt = await command.store.prompts.activate(*command.owner, command.config.version)
    if prompt is None:
        raise command.missing()
    return await command.tell(f"version {prompt.version} of {title_of(prompt)} is current", prompt)


async def _pin(command: _Command) -> int:
    prompt = await command.store.prompts.configure(*command.owner, is_pinned=True)
    if prompt is None:
        raise command.missing()
    return await command.tell(f"{title_of(prompt)} is to be pinned", prompt)


async def _unpin(command: _Command) -> int:
    config = command.config
    prompt = await command.store.prompts.configure(
        *command.owner, is_pinned=False, priority=config.priority, ttl_s=config.ttl_s
    )
    if prompt is None:
        raise command.missing()
    return await command.tell(f"{title_of(prompt)} is not pinned any more", prompt)


_ACTIONS: dict[str, Callable[[_Command], Awaitable[int]]] = {
    "list": _list,
    "show": _show,
    "remove": _remove,
    "activate": _activate,
    "pin": _pin,
    "unpin": _unpin,
}
