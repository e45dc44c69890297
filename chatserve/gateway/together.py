"""Several pieces of work that stand or fall together.

Owns the rule for the choices of one request: none is left running when one has failed, or when
whoever waits for them all is cancelled. Knows no choice.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def run_together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once and return their results in order, or raise the first failure as it is.

    Returns and raises only after every one has unwound.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failures:
        first = failures.exceptions[0]
        raise first from first.__cause__
    return [task.result() for task in tasks]
