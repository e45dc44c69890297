"""The registered prompts as this gateway knows them.

Owns a copy of what is current, and the task that keeps it fresh: it is read when the registry's
bell rings, so that no request waits for the store. What is done with a prompt is the business of
`preamble.py` and `personas.py`.
"""

import asyncio
import logging

from chatserve.errors import StoreError
from chatserve.gateway.background import Background
from chatserve.store.named_prompt import PREAMBLE_NAME, PUBLIC_TENANT, NamedPrompt
from chatserve.store.prompts import Prompts

logger = logging.getLogger(__name__)

_RELOAD_MS = 10_000
"""How often it is read without a bell, which a store that lost its last second needs."""

RETRY_S = 0.5

MAX_OLD_VERSIONS = 256


class PromptRegistry:
    """The prompts in force.

    While the store is away the last known ones stay. Older versions, which hardly anybody asks
    for, are read when they are, and kept until the registry changes.

    Owns: the copies, and the task that follows the registry.
    Used from: the event loop.
    """

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts
        self._current: dict[tuple[str, str], NamedPrompt] = {}
        self._of_tenant: dict[str, list[NamedPrompt]] = {}
        self._old: dict[tuple[str, str, int], NamedPrompt] = {}
        self._reading = asyncio.Lock()
        self._following = Background(self._follow)

    @property
    def preamble(self) -> str | None:
        """The text of the operator's preamble, if there is one."""
        found = self.current(PUBLIC_TENANT, PREAMBLE_NAME)
        return None if found is None else found.text

    async def start(self) -> None:
        """Read the registry once, then keep it fresh until `aclose`."""
        await self.reload()
        self._following.start()

    async def aclose(self) -> None:
        await self._following.aclose()

    def all(self) -> list[NamedPrompt]:
        """Return the prompts of all tenants, by tenant and name."""
        return list(self._current.values())

    def current(self, tenant: str, name: str) -> NamedPrompt | None:
        return self._current.get((tenant, name))

    def of_tenant(self, tenant: str) -> list[NamedPrompt]:
        """Return a tenant's prompts by name."""
        return self._of_tenant.get(tenant, [])

    async def version(self, tenant: str, name: str, number: int) -> NamedPrompt | None:
        """Return a prompt in one of its versions, None when that is not kept."""
        current = self.current(tenant, name)
        if current is None or current.version == number:
            return current
        key, remembered = (tenant, name, number), self._old
        found = remembered.get(key) or await self._prompts.get(tenant, name, number)
        # Into what it was read for: the registry may have changed meanwhile.
        if found is not None and len(remembered) < MAX_OLD_VERSIONS:
            remembered[key] = found
        return found

    async def reload(self) -> None:
        """Read the registry now, for whoever has just changed it."""
        # One at a time, so that what was read earlier never replaces what was read later.
        async with self._reading:
            found = await self._prompts.list()
            self._current = {(prompt.tenant, prompt.name): prompt for prompt in found}
            self._of_tenant = {}
            for prompt in found:
                self._of_tenant.setdefault(prompt.tenant, []).append(prompt)
            self._old = {}

    async def _follow(self) -> None:
        cursor = "0-0"
        while True:
            try:
                rung = await self._prompts.wait_for_change(cursor, _RELOAD_MS)
                await self.reload()
                cursor = rung
            except StoreError as error:
                logger.log(error.log_level, "the registered prompts cannot be read: %s", error)
                await asyncio.sleep(RETRY_S)
