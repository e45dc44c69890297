"""The settings of `chatserve tenant`.

Owns which flag belongs to which action. What a name may be is the store's business. Only where the
store is may come from a variable, as with `chatserve prompt`.
"""

from dataclasses import dataclass, field
from pathlib import Path

from chatserve import setting_kinds as kinds
from chatserve.admin.action_flags import (
    action_flag,
    check_action_flags,
    check_something_is_set,
    json_flag,
    store_flag,
)
from chatserve.admin.quota_flags import TENANT_QUOTAS, quota_flag
from chatserve.config import DATA_DIR
from chatserve.environment import default_data_dir
from chatserve.errors import ConfigError
from chatserve.settings import check_settings, setting

ALL_MODELS = "all"

_CHANGES = TENANT_QUOTAS | {"models"}
ACTIONS = {
    "list": frozenset({"as_json"}),
    "add": _CHANGES | {"name", "as_json"},
    "show": frozenset({"name", "as_json"}),
    "set": _CHANGES | {"name", "as_json"},
    "remove": frozenset({"name", "is_confirmed", "as_json"}),
}


@dataclass(frozen=True, slots=True)
class TenantConfig:
    """What `chatserve tenant` was asked to do.

    Used from: the command line.
    """

    action: str = action_flag(ACTIONS)
    name: str | None = setting(
        "name", "which tenant; stands right after the action", kinds.text("NAME"), default=None
    )
    models: tuple[str, ...] | None = setting(
        "--models",
        f"add, set: models that it may use, separated by commas, or `{ALL_MODELS}`",
        kinds.names("NAMES", r".+", "names of models"),
        default=None,
        default_text="all",
        is_variable=False,
    )
    requests_per_minute: int | str | None = quota_flag(
        "requests_per_minute", "add, set: requests in a minute"
    )
    tokens_per_minute: int | str | None = quota_flag(
        "tokens_per_minute", "add, set: tokens in a minute, of prompts and answers"
    )
    parallel_responses: int | str | None = quota_flag(
        "parallel_responses", "add, set: responses in flight at a time"
    )
    connections: int | str | None = quota_flag("connections", "add, set: WebSockets at a time")
    pinned_pages: int | str | None = quota_flag(
        "pinned_pages", "add, set: KV pages of its pinned prompts"
    )
    is_confirmed: bool = setting(
        "--yes",
        "remove: do not ask, as a script cannot answer",
        kinds.switch(value=True),
        default=False,
        is_variable=False,
    )
    as_json: bool = json_flag()
    redis_url: str | None = store_flag()
    data_dir: Path = field(default_factory=default_data_dir, metadata=DATA_DIR)

    def __post_init__(self) -> None:
        check_settings(self)
        check_action_flags(self, "tenant", ACTIONS[self.action])
        if "name" in ACTIONS[self.action] and self.name is None:
            raise ConfigError(f"tenant {self.action}: name a tenant")
        if self.action == "set":
            check_something_is_set(self, "tenant", _CHANGES)
