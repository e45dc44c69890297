"""The flags that commands have in common, and which flag belongs to which action.

Owns how an action, the store and the form of the output are named, and the checks. Each command's
config says what its actions take.
"""

from collections.abc import Iterable
from typing import Any

from chatserve import setting_kinds as kinds
from chatserve.errors import ConfigError
from chatserve.settings import setting, settings_of

ALWAYS = frozenset({"action", "redis_url", "data_dir"})
"""The fields that every action takes."""


def action_flag(actions: Iterable[str]) -> Any:
    """Return the field that says what to do."""
    names = tuple(actions)
    return setting(
        "action",
        f"what to do: {', '.join(names)}",
        kinds.choice(*names, metavar="ACTION"),
        default="list",
    )


def json_flag(meaning: str = "print as JSON") -> Any:
    """Return the field that asks for output that programs read."""
    return setting("--json", meaning, kinds.switch(value=True), default=False, is_variable=False)


def store_flag() -> Any:
    """Return the field that says which store to use."""
    return setting(
        "--redis-url",
        "store to use",
        kinds.store_url(),
        default=None,
        default_text="that of `chatserve serve` on this data folder",
    )


def check_action_flags(config: Any, command: str, taken: frozenset[str]) -> None:
    """Raise ConfigError for the first setting that was given and that the action has no use for.

    Args:
        config: The settings; `action` is one of them.
        command: What the command is called.
        taken: The fields that the action takes besides where the store is.
    """
    for declared, known in settings_of(type(config)):
        is_taken = declared.name in ALWAYS | taken
        if is_taken or getattr(config, declared.name) == declared.default:
            continue
        if known.is_positional:
            raise ConfigError(f"`{command} {config.action}` takes no {known.flag}")
        raise ConfigError(f"{known.flag} is not for `{command} {config.action}`")


def check_something_is_set(config: Any, command: str, changes: frozenset[str]) -> None:
    """Raise ConfigError where an action that changes something was not told what.

    Args:
        config: The settings; `action` is one of them.
        command: What the command is called.
        changes: The fields that say what is to be different.
    """
    by_name = {declared.name: (declared, known) for declared, known in settings_of(type(config))}
    offered = [by_name[name] for name in by_name if name in changes]
    if all(getattr(config, declared.name) == declared.default for declared, _ in offered):
        flags = ", ".join(known.flag for _, known in offered)
        raise ConfigError(f"{command} {config.action}: say what is to change, by any of {flags}")
