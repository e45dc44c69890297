"""Entries of Redis Streams, parsed, and the blocking read over several streams.

Owns the shape of a stream reply and the bounds of a wait. Knows nothing of what the fields mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatserve.store.codec import Command, pairs
from chatserve.store.redis_client import RedisClient

_REPLY_GRACE_S = 5.0
"""How much longer than its own bound a blocking read may take before it counts as lost."""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One entry: its id as the server writes it, and its fields."""

    entry_id: str
    fields: dict[str, str]


def parse_entries(reply: list[Any]) -> list[StreamEntry]:
    """Parse the entries of one stream, as XRANGE, XREVRANGE and XREAD send them."""
    return [StreamEntry(entry_id, pairs(flat)) for entry_id, flat in reply]


async def read_streams(
    client: RedisClient, cursors: Mapping[str, str], *, block_ms: int, count: int
) -> dict[str, list[StreamEntry]]:
    """Return the entries after each key's cursor, waiting up to `block_ms` for a first one.

    A server that does not answer in time raises StoreError; it is never waited for without end.
    """
    command: Command = ("XREAD", "COUNT", count, "BLOCK", block_ms, "STREAMS")
    timeout_s = block_ms / 1000 + _REPLY_GRACE_S
    reply = await client.call(*command, *cursors, *cursors.values(), timeout_s=timeout_s)
    return {key: parse_entries(entries) for key, entries in reply or ()}
