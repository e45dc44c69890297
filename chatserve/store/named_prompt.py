"""A registered system prompt: its record, and what one may be.

Owns the rules for names, texts, variables and settings, and how a record is written. Knows no
store and no tokens.

The one prompt of the tenant "" is the operator's preamble, which stands before the system message
of everybody. Its name is fixed, so there is one at a time, and it has no variables: nobody could
give their values.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import orjson

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest
from chatserve.identity import NAME_RULE, is_tenant_name
from chatserve.text.variables import MAX_VALUE_CHARS, MAX_VARIABLES, variables_of

PUBLIC_TENANT = ""
PREAMBLE_NAME = "preamble"

MAX_TEXT_BYTES = 64 * 1024
MAX_PRIORITY = 1000
MAX_TTL_S = 365 * 24 * 3600

_UNICODE_RULE = "be Unicode, got half of a surrogate pair"
_VERSION = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class NamedPrompt:
    """A registered system prompt, in one of its versions.

    A pinned one is never evicted from a worker's pool. Any other is evicted after those of lower
    `priority`, and forgotten when it has not been used for `ttl_s` seconds. These settings are of
    the prompt, whatever version of it is current; the text, the `defaults` of its variables and
    `created_at` (in seconds since 1970) are of the version.

    Whenever another text becomes current, or the same one is added again, the prompt gets another
    `revision`, by which news of it can be told from news of what it was before.
    """

    tenant: str
    name: str
    text: str
    is_pinned: bool = True
    priority: int = 0
    ttl_s: float | None = None
    created_at: int = 0
    revision: str = ""
    version: int = 0
    defaults: dict[str, str] = field(default_factory=dict)

    @property
    def is_preamble(self) -> bool:
        return self.tenant == PUBLIC_TENANT

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order in which the text has them."""
        return () if self.is_preamble else variables_of(self.text)

    def in_version(self, other: Self) -> Self:
        """Return the prompt with what belongs to another version of it, and its own settings."""
        return replace(
            self,
            text=other.text,
            defaults=other.defaults,
            created_at=other.created_at,
            version=other.version,
        )


def field_of(tenant: str, name: str) -> str:
    """Return what a prompt is stored under; a slash is in no name and no tenant."""
    return f"{tenant}/{name}"


def to_record(prompt: NamedPrompt) -> dict[str, Any]:
    """Return what is stored of a prompt, besides what it is stored under."""
    names = (each.name for each in fields(NamedPrompt))
    return {name: getattr(prompt, name) for name in names if name not in ("tenant", "name")}


def from_record(stored_under: str, record: str) -> NamedPrompt:
    """Return the prompt that was stored."""
    tenant, _, name = stored_under.partition("/")
    return NamedPrompt(tenant, name, **orjson.loads(record))


def parse_version(text: str) -> int | None:
    """Return the number of a version, None for what is no such number."""
    return int(text) if _VERSION.fullmatch(text) else None


def check(prompt: NamedPrompt) -> None:
    """Raise InvalidRequest for a prompt that may not be registered, without repeating its text."""
    for param, complaint in _complaints(prompt):
        raise InvalidRequest(f"{param}: {complaint}", code=ErrorCode.INVALID_PROMPT, param=param)


def _complaints(prompt: NamedPrompt) -> Iterator[tuple[str, str]]:
    """Yield each field that is not allowed, and what it must be. Never the text."""
    yield from _name_complaints(prompt)
    text_complaint = _text_complaint(prompt.text)
    if text_complaint is not None:
        yield "text", text_complaint
    else:
        yield from _variable_complaints(prompt)
    if abs(prompt.priority) > MAX_PRIORITY:
        yield "priority", f"must be from {-MAX_PRIORITY} to {MAX_PRIORITY}, got {prompt.priority}"
    if prompt.ttl_s is not None and prompt.is_pinned:
        yield "ttl_s", "must not be set for a pinned prompt, which is kept for good"
    if prompt.ttl_s is not None and not 0 < prompt.ttl_s <= MAX_TTL_S:
        yield "ttl_s", f"must be more than 0 and at most {MAX_TTL_S}, got {prompt.ttl_s}"


def _name_complaints(prompt: NamedPrompt) -> Iterator[tuple[str, str]]:
    if not prompt.is_preamble and not is_tenant_name(prompt.tenant):
        yield "tenant", f"must be {NAME_RULE}, got {prompt.tenant[:80]!r}"
    if not is_tenant_name(prompt.name):
        yield "name", f"must be {NAME_RULE}, got {prompt.name[:80]!r}"
    if prompt.is_preamble and prompt.name != PREAMBLE_NAME:
        yield "name", f"the preamble of all tenants is called {PREAMBLE_NAME!r}"


def _text_complaint(text: str) -> str | None:
    if not text.strip():
        return "must not be empty"
    if not _is_unicode(text):
        return f"must {_UNICODE_RULE}"
    num_bytes = len(text.encode())
    if num_bytes > MAX_TEXT_BYTES:
        return f"must have at most {MAX_TEXT_BYTES:,} bytes, got {num_bytes:,}"
    return None


def _variable_complaints(prompt: NamedPrompt) -> Iterator[tuple[str, str]]:
    if prompt.is_preamble and prompt.defaults:
        yield "variables", "the preamble has none, since nobody could give their values"
    variables = prompt.variables
    if len(variables) > MAX_VARIABLES:
        yield "text", f"must have at most {MAX_VARIABLES} variables, got {len(variables)}"
    for name, default in prompt.defaults.items():
        complaint = _default_complaint(default)
        if name not in variables:
            yield "variables", f"a default for {name[:80]!r}, which the text has nowhere in braces"
        elif complaint is not None:
            yield "variables", f"the default for {name!r} must {complaint}"


def _default_complaint(default: str) -> str | None:
    if len(default) > MAX_VALUE_CHARS:
        return f"have at most {MAX_VALUE_CHARS:,} characters, got {len(default):,}"
    return None if _is_unicode(default) else _UNICODE_RULE


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
