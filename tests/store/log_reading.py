"""How the tests of following read a log: to its end, a few entries, or into a list."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from store.store_helpers import claim_names, enqueue

from chatserve.engine.api import RequestId
from chatserve.store.connection import Store
from chatserve.store.log_reader import LogReader
from chatserve.store.response_log import LogEntry


async def start(store: Store, *names: str) -> None:
    await enqueue(store, *names)
    await claim_names(store, "w", limit=len(names))


async def collect(reader: LogReader, name: str, after: int = -1) -> list[int]:
    """Follow a log to its end and return the numbers of its entries."""
    async with aclosing(reader.follow(RequestId(name), after)) as entries:
        return [entry.sequence_number async for entry in entries]


async def read_into(texts: list[tuple[int, str]], reader: LogReader, name: str) -> None:
    """Follow a log to its end and add the number and text of each entry."""
    async with aclosing(reader.follow(RequestId(name))) as entries:
        async for entry in entries:
            texts.append((entry.sequence_number, entry.event.text))


async def take(entries: AsyncGenerator[LogEntry, None], count: int) -> list[int]:
    return [(await anext(entries)).sequence_number for _ in range(count)]
