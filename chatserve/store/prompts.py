"""The system prompts that are registered by name and version, and the bell that tells of changes.

Owns the registry and how many there may be. What a prompt may be stands in `named_prompt.py`; what
it comes to depends on the model, and each worker tells it in `prompt_news.py`.

A prompt has versions, numbered from 1 in the order in which they were added. One is current, at
first always the newest: it is what the name means, and what workers have ready. The last ones are
kept beside it, and can be asked for by number or be made current again. No number is given twice,
so it means one text for as long as its prompt is registered.
"""

import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from chatserve.error_codes import ErrorCode
from chatserve.errors import Conflict
from chatserve.store import keys, scripts
from chatserve.store.codec import dump_json, pairs
from chatserve.store.named_prompt import (
    NamedPrompt,
    check,
    field_of,
    from_record,
    to_record,
)
from chatserve.store.redis_client import RedisClient
from chatserve.store.streams import read_streams

MAX_PROMPTS = 1024
MAX_PROMPTS_OF_TENANT = 64
MAX_VERSIONS = 20

_SCAN_COUNT = 64
_MAX_TRIES = 5

_PROMPTS = keys.GLOBAL.key(keys.PROMPTS)
_BELL = keys.GLOBAL.key(keys.PROMPT_BELL)

_NEWEST = "newest"
"""Stands beside the versions, so that the number of one that was removed is not given again."""


class Prompts:
    """The registered prompts.

    Owns: nothing in memory.
    Used from: the event loop, of gateways, of workers and of the operator's commands.
    """

    def __init__(self, commands: RedisClient, blocking: RedisClient) -> None:
        self._commands = commands
        self._blocking = blocking

    async def add(self, prompt: NamedPrompt) -> NamedPrompt:
        """Register a prompt, or a new version of the one that has its name, and return it.

        Raises:
            InvalidRequest: The name, the text or another field is not allowed.
            Conflict: There are as many prompts as there may be.
        """
        check(prompt)
        stored = replace(prompt, created_at=int(time.time()), revision=_new_revision())
        record = to_record(stored)
        del record["version"]  # which is the script's to give
        reply = await self._commands.run(
            scripts.ADD_PROMPT,
            keys.GLOBAL.root,
            stored.tenant,
            stored.name,
            stored.revision,
            dump_json(record),
            MAX_PROMPTS,
            MAX_PROMPTS_OF_TENANT,
            MAX_VERSIONS,
        )
        if isinstance(reply, int):
            return replace(stored, version=reply)
        limit, whose = MAX_PROMPTS, "in all"
        if reply == "tenant_full":
            limit, whose = MAX_PROMPTS_OF_TENANT, f"for tenant {prompt.tenant!r}"
        raise Conflict(
            f"{limit} prompts are registered {whose}, which is the limit; remove one first",
            code=ErrorCode.TOO_MANY_PROMPTS,
            param="name",
        )

    async def activate(self, tenant: str, name: str, version: int) -> NamedPrompt | None:
        """Make a version the current one and return it; None when it is not kept."""
        async for current in self._tries(tenant, name):
            chosen = await self.get(tenant, name, version)
            if chosen is None:
                return None
            wanted = replace(current.in_version(chosen), revision=_new_revision())
            if await self._change(current, wanted):
                return wanted
        return None

    async def configure(
        self,
        tenant: str,
        name: str,
        *,
        is_pinned: bool | None = None,
        priority: int | None = None,
        ttl_s: float | None = None,
    ) -> NamedPrompt | None:
        """Change how a prompt is kept, and return it; None when there is none of this name.

        What is None stays as it is; but a prompt that is pinned now has no `ttl_s` any more.

        Raises:
            InvalidRequest: A setting is not allowed.
        """
        async for current in self._tries(tenant, name):
            kept_ttl_s = None if is_pinned else current.ttl_s
            wanted = replace(
                current,
                is_pinned=current.is_pinned if is_pinned is None else is_pinned,
                priority=current.priority if priority is None else priority,
                ttl_s=kept_ttl_s if ttl_s is None else ttl_s,
                revision=_new_revision(),
            )
            check(wanted)
            if await self._change(current, wanted):
                return wanted
        return None

    async def remove(self, tenant: str, name: str) -> bool:
        """Take a prompt out of the registry, all versions of it; False when there is none."""
        reply = await self._commands.run(scripts.REMOVE_PROMPT, keys.GLOBAL.root, tenant, name, "")
        return bool(reply == "removed")

    async def remove_version(self, tenant: str, name: str, version: int) -> bool:
        """Remove an old version of a prompt; False when it is not kept.

        Raises:
            Conflict: It is the current one.
        """
        reply = await self._commands.run(
            scripts.REMOVE_PROMPT, keys.GLOBAL.root, tenant, name, version
        )
        if reply == "current":
            raise Conflict(
                f"version {version} is current: activate another one first, or remove them all",
                code=ErrorCode.VERSION_IN_USE,
                param="version",
            )
        return bool(reply == "removed")

    async def get(self, tenant: str, name: str, version: int | None = None) -> NamedPrompt | None:
        """Return the current version of a prompt, or the one of a number; None if not there.

        An older version comes with the settings that it was added with.
        """
        field = field_of(tenant, name)
        if version is None:
            record = await self._commands.call("HGET", _PROMPTS, field)
        else:
            record = await self._commands.call("HGET", _versions_key(tenant, name), version)
        return from_record(field, record) if record else None

    async def versions(self, tenant: str, name: str) -> list[NamedPrompt]:
        """Return the versions of a prompt that are kept, the oldest first; none if there is none.

        Each comes with the settings that it was added with.
        """
        kept = pairs(await self._commands.call("HGETALL", _versions_key(tenant, name)))
        field = field_of(tenant, name)
        found = [from_record(field, record) for key, record in kept.items() if key != _NEWEST]
        return sorted(found, key=lambda prompt: prompt.version)

    async def list(self, tenant: str | None = None) -> list[NamedPrompt]:
        """Return the current prompts of one tenant, or of all, by tenant and name.

        One that is added or removed meanwhile may be missing or there still.
        """
        found: dict[str, NamedPrompt] = {}
        cursor = "0"
        while True:
            cursor, flat = await self._commands.call(
                "HSCAN", _PROMPTS, cursor, "COUNT", _SCAN_COUNT
            )
            # Parsed between two awaits, since all texts together may be many megabytes.
            found |= {field: from_record(field, record) for field, record in pairs(flat).items()}
            if cursor == "0":
                break
        prompts = (prompt for _, prompt in sorted(found.items()))
        return [prompt for prompt in prompts if tenant is None or prompt.tenant == tenant]

    async def wait_for_change(self, cursor: str, block_ms: int) -> str:
        """Wait until the registry has changed after `cursor`, or the time is up.

        Returns the cursor of the last change; "0-0" is before all of them. Whoever reads the
        registry after each return has seen every change.
        """
        entries = await read_streams(self._blocking, {_BELL: cursor}, block_ms=block_ms, count=1)
        rung = entries.get(_BELL)
        return rung[-1].entry_id if rung else cursor

    async def _tries(self, tenant: str, name: str) -> AsyncIterator[NamedPrompt]:
        """Yield a prompt as it is now, again for as long as somebody else changes it meanwhile."""
        for _ in range(_MAX_TRIES):
            current = await self.get(tenant, name)
            if current is None:
                return
            yield current
        raise Conflict(
            "the prompt keeps changing; try again", code=ErrorCode.PROMPT_CHANGED, param="name"
        )

    async def _change(self, current: NamedPrompt, wanted: NamedPrompt) -> bool:
        """Put a prompt in the place of what it was; False when it is not that any more."""
        is_changed = await self._commands.run(
            scripts.CHANGE_PROMPT,
            keys.GLOBAL.root,
            wanted.tenant,
            wanted.name,
            current.revision,
            wanted.version,
            dump_json(to_record(wanted)),
        )
        return bool(is_changed)


def _new_revision() -> str:
    return secrets.token_hex(8)


def _versions_key(tenant: str, name: str) -> str:
    return keys.GLOBAL.key(keys.PROMPT_VERSIONS + field_of(tenant, name))
