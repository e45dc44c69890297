"""The settings of `chatserve key`.

Owns which flag belongs to which action, and how a lifetime is written. What a name may be is the
store's business. Only where the store is may come from a variable, as with `chatserve prompt`.
"""

import re
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
from chatserve.admin.quota_flags import KEY_QUOTAS, quota_flag
from chatserve.config import DATA_DIR
from chatserve.environment import default_data_dir
from chatserve.errors import ConfigError
from chatserve.settings import Kind, check_settings, setting

NEVER = "never"

_CHANGES = KEY_QUOTAS | {"role", "label", "expires"}
ACTIONS = {
    "list": frozenset({"tenant", "as_json"}),
    "add": _CHANGES | {"tenant", "user", "is_quiet", "as_json"},
    "set": _CHANGES | {"key_id", "as_json"},
    "show": frozenset({"key_id", "as_json"}),
    "rotate": frozenset({"key_id", "grace_s", "is_quiet", "as_json"}),
    "revoke": frozenset({"key_id", "as_json"}),
}

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
_MAX_LIFETIME_S = 100 * 365 * 24 * 3600
_MAX_GRACE_S = 30 * 24 * 3600


def _parse_lifetime(value: str) -> int:
    found = re.fullmatch(r"(\d{1,9})([smhd])", value)
    if found is None:
        raise ValueError(f"expected a number with s, m, h or d, such as 90d, got {value!r}")
    return int(found[1]) * _UNITS_S[found[2]]


def _expiry() -> Kind:
    lifetime = _lifetime(1, _MAX_LIFETIME_S)

    def parse(value: str) -> int | str:
        return NEVER if value.lower() == NEVER else lifetime.parse(value)

    def check(value: int | str) -> str | None:
        return None if value == NEVER or lifetime.check is None else lifetime.check(value)

    return Kind(parse, lifetime.metavar, check)


def _lifetime(low_s: int, high_s: int) -> Kind:
    def check(value: int) -> str | None:
        days = high_s // _UNITS_S["d"]
        return None if low_s <= value <= high_s else f"must be from {low_s}s to {days}d"

    return Kind(_parse_lifetime, "TIME", check)


@dataclass(frozen=True, slots=True)
class KeyConfig:
    """What `chatserve key` was asked to do.

    Used from: the command line.
    """

    action: str = action_flag(ACTIONS)
    key_id: str | None = setting(
        "id", "show, set, rotate, revoke: which key, by its id", kinds.text("ID"), default=None
    )
    tenant: str | None = setting(
        "--tenant",
        "whose key; the tenant must exist",
        kinds.text("TENANT"),
        default=None,
        default_text="none; list: all",
        is_variable=False,
    )
    user: str | None = setting(
        "--user",
        "add: whose conversations it opens",
        kinds.text("USER"),
        default=None,
        is_variable=False,
    )
    role: str | None = setting(
        "--role",
        "add, set: member, or operator, who may also administer all tenants",
        kinds.choice("member", "operator", metavar="ROLE"),
        default=None,
        default_text="member",
        is_variable=False,
    )
    label: str | None = setting(
        "--label",
        "add, set: a note for people",
        kinds.text("TEXT"),
        default=None,
        is_variable=False,
    )
    expires: int | str | None = setting(
        "--expires",
        f"add, set: how long it works from now on, such as 90d or 12h, or `{NEVER}`",
        _expiry(),
        default=None,
        default_text="until it is revoked",
        is_variable=False,
    )
    grace_s: int = setting(
        "--grace",
        "rotate: how long the old secret works as well, such as 1h",
        _lifetime(0, _MAX_GRACE_S),
        default=0,
        default_text="0s",
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
    is_quiet: bool = setting(
        "--quiet",
        "add, rotate: print the secret and nothing else",
        kinds.switch(value=True),
        default=False,
        is_variable=False,
    )
    as_json: bool = json_flag()
    redis_url: str | None = store_flag()
    data_dir: Path = field(default_factory=default_data_dir, metadata=DATA_DIR)

    def __post_init__(self) -> None:
        check_settings(self)
        check_action_flags(self, "key", ACTIONS[self.action])
        if "key_id" in ACTIONS[self.action] and self.key_id is None:
            raise ConfigError(f"key {self.action}: name a key by its id, see `chatserve key list`")
        if self.action == "add" and (self.tenant is None or self.user is None):
            raise ConfigError("key add: say by --tenant and --user whose key it is to be")
        if self.action == "set":
            check_something_is_set(self, "key", _CHANGES)
        if self.is_quiet and self.as_json:
            raise ConfigError("--quiet and --json: give one of them")
