"""The settings of `chatserve prompt`.

Owns which flag belongs to which action. What a name or a text may be is the registry's business.

Only where the store is may come from a variable: a forgotten one must never turn a command into
another.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from chatserve import setting_kinds as kinds
from chatserve.admin.action_flags import (
    action_flag,
    check_action_flags,
    json_flag,
    store_flag,
)
from chatserve.config import DATA_DIR
from chatserve.environment import default_data_dir
from chatserve.errors import ConfigError
from chatserve.settings import check_settings, setting

_BY_NAME = frozenset({"name", "tenant", "is_public"})
ACTIONS = {
    "list": frozenset({"tenant", "is_public", "as_json"}),
    "add": _BY_NAME | {"file", "variables", "is_pinned", "priority", "ttl_s", "waits"},
    "show": _BY_NAME | {"version"},
    "remove": _BY_NAME | {"version"},
    "activate": _BY_NAME | {"version", "waits"},
    "pin": _BY_NAME | {"waits"},
    "unpin": _BY_NAME | {"priority", "ttl_s", "waits"},
}
_MAX_VERSION = 10**9 - 1


@dataclass(frozen=True, slots=True)
class PromptConfig:
    """What `chatserve prompt` was asked to do.

    Used from: the command line.
    """

    action: str = action_flag(ACTIONS)
    name: str | None = setting(
        "name", "which prompt; stands right after the action", kinds.text("NAME"), default=None
    )
    tenant: str | None = setting(
        "--tenant",
        "whose prompt",
        kinds.text("TENANT"),
        default=None,
        default_text="`default`; list: all",
        is_variable=False,
    )
    is_public: bool = setting(
        "--public",
        "the preamble, which stands before everybody's system message",
        kinds.switch(value=True),
        default=False,
        is_variable=False,
    )
    file: str | None = setting(
        "--file",
        "add: where the text is, - for the standard input",
        kinds.text("PATH"),
        default=None,
        is_variable=False,
    )
    version: int | None = setting(
        "--version",
        "activate: which version; show, remove: one that is not current",
        kinds.number(1, _MAX_VERSION),
        default=None,
        is_variable=False,
    )
    variables: tuple[tuple[str, str], ...] = setting(
        "--variable",
        "add: the default of a variable; may be given once for each",
        kinds.assignments("NAME=DEFAULT"),
        default=(),
        is_variable=False,
    )
    is_pinned: bool = setting(
        "--no-pin",
        "add: let its pages be evicted when others need them",
        kinds.switch(value=False),
        default=True,
        is_variable=False,
    )
    priority: int = setting(
        "--priority",
        "add, unpin: of two that are not pinned, the higher stays longer",
        kinds.number(-1000, 1000),
        default=0,
        is_variable=False,
    )
    ttl_s: float | None = setting(
        "--ttl",
        "unpin, or add with --no-pin: drop its KV when it has not been used for so long",
        kinds.seconds(1, 365 * 24 * 3600),
        default=None,
        is_variable=False,
    )
    waits: bool = setting(
        "--no-wait",
        "do not wait until the workers have computed it",
        kinds.switch(value=False),
        default=True,
        is_variable=False,
    )
    as_json: bool = json_flag("list: as JSON")
    redis_url: str | None = store_flag()
    data_dir: Path = field(default_factory=default_data_dir, metadata=DATA_DIR)

    def __post_init__(self) -> None:
        check_settings(self)
        check_action_flags(self, "prompt", ACTIONS[self.action])
        if "name" in ACTIONS[self.action] and self.name is None and not self.is_public:
            raise ConfigError(f"prompt {self.action}: name a prompt, or the preamble by --public")
        if self.is_public and self.tenant is not None:
            raise ConfigError("--public and --tenant: the preamble belongs to no tenant")
        if self.action == "add" and self.file is None:
            raise ConfigError("prompt add: say by --file where the text is, - for standard input")
        if self.action == "activate" and self.version is None:
            raise ConfigError("prompt activate: say by --version which one is to be current")
        self._check_variables()
        if self.action == "add" and self.ttl_s is not None and self.is_pinned:
            raise ConfigError("--ttl: a pinned prompt is kept for good; give --no-pin as well")

    def _check_variables(self) -> None:
        counts = Counter(name for name, _ in self.variables)
        twice = next((name for name, count in counts.items() if count > 1), None)
        if twice is not None:
            raise ConfigError(f"--variable: there are two defaults for {twice!r}")
