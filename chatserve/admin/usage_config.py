"""The settings of `chatserve usage`.

Owns the flags. Only where the store is may come from a variable, as with `chatserve prompt`.
"""

from dataclasses import dataclass, field
from pathlib import Path

from chatserve import setting_kinds as kinds
from chatserve.admin.action_flags import json_flag, store_flag
from chatserve.config import DATA_DIR
from chatserve.environment import default_data_dir
from chatserve.settings import check_settings, setting

GROUPS = ("tenant", "user", "model", "day")
MAX_DAYS = 400


@dataclass(frozen=True, slots=True)
class UsageConfig:
    """What `chatserve usage` was asked for.

    Used from: the command line.
    """

    tenant: str | None = setting(
        "--tenant",
        "whose usage",
        kinds.text("TENANT"),
        default=None,
        default_text="all",
        is_variable=False,
    )
    days: int = setting(
        "--days",
        "how many days, the last of them today (UTC)",
        kinds.number(1, MAX_DAYS),
        default=30,
        is_variable=False,
    )
    group: str = setting(
        "--by",
        f"add up by: {', '.join(GROUPS)}",
        kinds.choice(*GROUPS, metavar="GROUP"),
        default="tenant",
        is_variable=False,
    )
    as_json: bool = json_flag("as JSON")
    redis_url: str | None = store_flag()
    data_dir: Path = field(default_factory=default_data_dir, metadata=DATA_DIR)

    def __post_init__(self) -> None:
        check_settings(self)
