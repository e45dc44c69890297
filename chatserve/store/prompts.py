"""The system prompts that were registered by name, and the bell that tells of changes.

Owns the registry and its bounds. Knows no tokens: what a prompt comes to depends on the model, and
each worker tells it in `prompt_news.py`.

The one prompt of the tenant "" is the operator's preamble, which stands before the system message
of everybody. Its name is fixed, so there is one at a time: adding another replaces it.
"""

import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import orjson

from chatserve.errors import Conflict, InvalidRequest
from chatserve.store import keys, scripts
from chatserve.store.codec import dump_json, pairs
from chatserve.store.redis_client import RedisClient
from chatserve.store.streams import read_streams

PUBLIC_TENANT = ""
PREAMBLE_NAME = "preamble"

MAX_PROMPTS = 1024
MAX_PROMPTS_OF_TENANT = 64
MAX_TEXT_BYTES = 64 * 1024
MAX_PRIORITY = 1000
MAX_TTL_S = 365 * 24 * 3600

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAME_RULE = "up to 64 letters, digits, dots, dashes and underscores, the first a letter or digit"
_SCAN_COUNT = 64


@dataclass(frozen=True, slots=True)
class NamedPrompt:
    """A registered system prompt.

    A pinned one is never evicted from a worker's pool. Any other is evicted after those of lower
    `priority`, and forgotten when it has not been used for `ttl_s` seconds. `created_at` is in
    seconds since 1970. Each time it is added it gets another `revision`, by which news of a prompt
    can be told from news of the one that it replaced.
    """

    tenant: str
    name: str
    text: str
    is_pinned: bool = True
    priority: int = 0
    ttl_s: float | None = None
    created_at: int = 0
    revision: str = ""

    @property
    def is_preamble(self) -> bool:
        return self.tenant == PUBLIC_TENANT


class Prompts:
    """The registered prompts.

    Owns: nothing in memory.
    Used from: the event loop, of gateways, of workers and of the operator's commands.
    """

    def __init__(self, commands: RedisClient, blocking: RedisClient) -> None:
        self._commands = commands
        self._blocking = blocking

    async def add(self, prompt: NamedPrompt) -> NamedPrompt:
        """Register a prompt, in place of the one that has its name, and return it as it is stored.

        Raises:
            InvalidRequest: The name, the text or another field is not allowed.
            Conflict: There are as many prompts as there may be.
        """
        _check(prompt)
        stored = replace(prompt, created_at=int(time.time()), revision=secrets.token_hex(8))
        reply = await self._commands.run(
            scripts.ADD_PROMPT,
            stored.tenant,
            stored.name,
            dump_json(_to_record(stored)),
            MAX_PROMPTS,
            MAX_PROMPTS_OF_TENANT,
        )
        if reply == "added":
            return stored
        limit, whose = MAX_PROMPTS, "in all"
        if reply == "tenant_full":
            limit, whose = MAX_PROMPTS_OF_TENANT, f"for tenant {prompt.tenant!r}"
        raise Conflict(
            f"{limit} prompts are registered {whose}, which is the limit; remove one first",
            code="too_many_prompts",
            param="name",
        )

    async def remove(self, tenant: str, name: str) -> bool:
        """Take a prompt out of the registry; False when there is none of this name."""
        return bool(await self._commands.run(scripts.REMOVE_PROMPT, tenant, name))

    async def get(self, tenant: str, name: str) -> NamedPrompt | None:
        record = await self._commands.call("HGET", keys.PROMPTS, _field(tenant, name))
        return _from_record(_field(tenant, name), record) if record else None

    async def preamble(self) -> NamedPrompt | None:
        """Return the operator's preamble, None when there is none in force."""
        return await self.get(PUBLIC_TENANT, PREAMBLE_NAME)

    async def list(self, tenant: str | None = None) -> list[NamedPrompt]:
        """Return the prompts of one tenant, or of all, by tenant and name.

        One that is added or removed meanwhile may be missing or there still.
        """
        records: dict[str, str] = {}
        cursor = "0"
        while True:
            cursor, flat = await self._commands.call(
                "HSCAN", keys.PROMPTS, cursor, "COUNT", _SCAN_COUNT
            )
            records |= pairs(flat)
            if cursor == "0":
                break
        found = [_from_record(field, record) for field, record in sorted(records.items())]
        return [prompt for prompt in found if tenant is None or prompt.tenant == tenant]

    async def wait_for_change(self, cursor: str, block_ms: int) -> str:
        """Wait until the registry has changed after `cursor`, or the time is up.

        Returns the cursor of the last change; "0-0" is before all of them. Whoever reads the
        registry after each return has seen every change.
        """
        entries = await read_streams(
            self._blocking, {keys.PROMPT_BELL: cursor}, block_ms=block_ms, count=1
        )
        rung = entries.get(keys.PROMPT_BELL)
        return rung[-1].entry_id if rung else cursor


def _field(tenant: str, name: str) -> str:
    """Return the field of a prompt; a slash is in no name and no tenant."""
    return f"{tenant}/{name}"


def _to_record(prompt: NamedPrompt) -> dict[str, Any]:
    names = (field.name for field in fields(NamedPrompt))
    return {name: getattr(prompt, name) for name in names if name not in ("tenant", "name")}


def _from_record(field: str, record: str) -> NamedPrompt:
    tenant, _, name = field.partition("/")
    return NamedPrompt(tenant, name, **orjson.loads(record))


def _check(prompt: NamedPrompt) -> None:
    for field, complaint in _complaints(prompt):
        raise InvalidRequest(f"{field}: {complaint}", code="invalid_prompt", param=field)


def _complaints(prompt: NamedPrompt) -> Iterator[tuple[str, str]]:
    """Yield each field that is not allowed, and what it must be. Never the text."""
    if not prompt.is_preamble and not _NAME.fullmatch(prompt.tenant):
        yield "tenant", f"must be {_NAME_RULE}, got {prompt.tenant[:80]!r}"
    if not _NAME.fullmatch(prompt.name):
        yield "name", f"must be {_NAME_RULE}, got {prompt.name[:80]!r}"
    if prompt.is_preamble and prompt.name != PREAMBLE_NAME:
        yield "name", f"the preamble of all tenants is called {PREAMBLE_NAME!r}"
    text_complaint = _text_complaint(prompt.text)
    if text_complaint is not None:
        yield "text", text_complaint
    if abs(prompt.priority) > MAX_PRIORITY:
        yield "priority", f"must be from {-MAX_PRIORITY} to {MAX_PRIORITY}, got {prompt.priority}"
    if prompt.ttl_s is not None and prompt.is_pinned:
        yield "ttl_s", "must not be set for a pinned prompt, which is kept for good"
    if prompt.ttl_s is not None and not 0 < prompt.ttl_s <= MAX_TTL_S:
        yield "ttl_s", f"must be more than 0 and at most {MAX_TTL_S}, got {prompt.ttl_s}"


def _text_complaint(text: str) -> str | None:
    if not text.strip():
        return "must not be empty"
    try:
        num_bytes = len(text.encode())
    except UnicodeEncodeError:
        return "must be Unicode, got half of a surrogate pair"
    if num_bytes > MAX_TEXT_BYTES:
        return f"must have at most {MAX_TEXT_BYTES:,} bytes, got {num_bytes:,}"
    return None
