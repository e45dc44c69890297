"""Who asks: the tenant, the user and the role that a credential stands for.

Owns the record and the words for it; how a credential becomes one is the gateway's business, and
what belongs to whom the store's. Standard library only, since both of them and the command line
import it.

An identity never comes from a request's body. Where no keys exist, everybody is `LOCAL`.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from chatserve.engine.api import DEFAULT_TENANT

LOCAL_USER = "local"
"""Who asks while no keys exist; a key of this user of the default tenant finds their sessions."""

NAME_RULE = "up to 64 letters, digits, dots, dashes and underscores, the first a letter or digit"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")


class Role(StrEnum):
    """What an identity may do: chat, or also administer the whole service."""

    MEMBER = "member"
    OPERATOR = "operator"


class Owner(NamedTuple):
    """Whose a session or a response is: one user of one tenant."""

    tenant: str
    user: str


@dataclass(frozen=True, slots=True)
class Identity:
    """One authenticated caller. `key_id` names the key, and is empty where there are no keys.

    `tenant_mark` tells their tenant from one of the same name that was removed before it was made.
    """

    tenant: str
    user: str
    role: Role = Role.MEMBER
    key_id: str = ""
    tenant_mark: str = ""

    @property
    def owner(self) -> Owner:
        return Owner(self.tenant, self.user)

    @property
    def is_operator(self) -> bool:
        return self.role is Role.OPERATOR


LOCAL = Identity(DEFAULT_TENANT, LOCAL_USER, Role.OPERATOR)


def is_tenant_name(name: str) -> bool:
    """Return whether a tenant, or a prompt, may be called so: see NAME_RULE."""
    return _NAME.fullmatch(name) is not None


def is_user_name(name: str) -> bool:
    """Return whether a user may be called so; an address of electronic mail may be one."""
    return _USER.fullmatch(name) is not None
