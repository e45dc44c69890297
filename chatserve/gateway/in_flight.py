"""The work that a connection has under way.

Owns how many tasks answer something at this moment, so that a connection that is to end can wait
until none does. Knows nothing of what they do.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


class InFlight:
    """The tasks of one connection that answer its peer, all in its task group.

    Owns: their number.
    Used from: the event loop.
    """

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._num_tasks = 0
        self._is_idle: asyncio.Event | None = None  # made for whoever waits: few sockets need it

    def create_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task whose failure ends the connection."""
        task = self._tasks.create_task(work)
        self._num_tasks += 1
        if self._is_idle is not None:
            self._is_idle.clear()
        task.add_done_callback(self._note_end)
        return task

    async def until_idle(self) -> None:
        """Return once no task is left."""
        if self._num_tasks:
            self._is_idle = self._is_idle or asyncio.Event()
            await self._is_idle.wait()

    def _note_end(self, _task: asyncio.Task[None]) -> None:
        self._num_tasks -= 1
        if not self._num_tasks and self._is_idle is not None:
            self._is_idle.set()
