"""Which flag belongs to which action of a command.

Owns the check. Each command's config says what its actions take.
"""

from typing import Any

from chatserve.errors import ConfigError
from chatserve.settings import settings_of

_ALWAYS = frozenset({"action", "redis_url", "data_dir"})


def check_action_flags(config: Any, command: str, taken: frozenset[str]) -> None:
    """Raise ConfigError for the first setting that was given and that the action has no use for.

    Args:
        config: The settings; `action` is one of them.
        command: What the command is called.
        taken: The fields that the action takes besides where the store is.
    """
    for declared, known in settings_of(type(config)):
        is_taken = declared.name in _ALWAYS | taken
        if is_taken or getattr(config, declared.name) == declared.default:
            continue
        if known.is_positional:
            raise ConfigError(f"`{command} {config.action}` takes no {known.flag}")
        raise ConfigError(f"{known.flag} is not for `{command} {config.action}`")
