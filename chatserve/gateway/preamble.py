"""The operator's preamble, as this gateway puts it in front of the system message of every chat.

Owns a copy of the preamble in force, and the task that keeps it fresh: it is read when the
registry's bell rings, so that no request waits for the store. Where it goes in a conversation is
said in `text/system_prompt.py`.
"""

import asyncio
import logging
from collections.abc import Sequence

from chatserve.errors import StoreError
from chatserve.store.prompts import Prompts
from chatserve.text.chat_template import ChatMessage
from chatserve.text.system_prompt import with_preamble

logger = logging.getLogger(__name__)

_RELOAD_MS = 2_000
"""How often it is read without a bell."""

_RETRY_S = 0.5


class Preamble:
    """The preamble in force.

    While the store is away the last known one stays.

    Owns: its text, and the task that follows the registry.
    Used from: the event loop.
    """

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts
        self._text: str | None = None
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the preamble once, then keep it fresh until `aclose`."""
        await self._read()
        self._following = asyncio.create_task(self._follow())

    async def aclose(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def before(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the conversation that a prompt is to be made of."""
        return with_preamble(messages, self._text)

    async def _read(self) -> None:
        preamble = await self._prompts.preamble()
        self._text = preamble.text if preamble is not None else None

    async def _follow(self) -> None:
        cursor = "0-0"
        while True:
            try:
                cursor = await self._prompts.wait_for_change(cursor, _RELOAD_MS)
                await self._read()
            except StoreError as error:
                logger.warning("the preamble cannot be read: %s", error)
                await asyncio.sleep(_RETRY_S)
