"""What the tests of the store share: servers, records, and a recount of its invariants.

`server_binaries` names the servers that the suite runs on. `check_invariants` looks at raw keys,
so that it would notice what the store's own methods hide.
"""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store.queue_recount import recount_queue

from chatserve.engine.api import (
    EventKind,
    FinishReason,
    GenerationRequest,
    LogEvent,
    Outcome,
    RequestId,
    SamplingParams,
    Usage,
)
from chatserve.identity import Owner
from chatserve.store import keys
from chatserve.store.codec import pairs
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Place
from chatserve.store.response_log import Append, FinalAnswer
from chatserve.store.responses import ResponseRecord
from chatserve.store.sessions import Message, SessionTurn

MODEL = "tiny"
LEASE_MS = 60_000
MAX_QUEUE = 2000
CLUSTER = "cluster"

OWNER = Owner("org", "user")
"""Whose sessions are; its keys are where those of ids without a digit are, on a cluster too."""


async def messages_of(store: Store, session_id: str) -> list[Message]:
    """Return all messages of a session in the order of writing."""
    outline = await store.sessions.outline(session_id)
    return list(await store.sessions.read(session_id, outline, outline.all()))


def server_binaries() -> list[object]:
    """Return one pytest parameter per server: the bundled Valkey, and Redis where it is there."""
    redis = shutil.which("redis-server")
    reason = "no redis-server on PATH (Debian: apt-get install redis-server)"
    return [
        pytest.param(None, id="valkey"),
        pytest.param(
            Path(redis) if redis else None,
            id="redis",
            marks=pytest.mark.skipif(redis is None, reason=reason),
        ),
    ]


def contract_servers() -> list[object]:
    """Return one pytest parameter per kind of store: each server, and a cluster of one node."""
    return [*server_binaries(), pytest.param(CLUSTER, id=CLUSTER)]


def make_request(name: str, **fields: Any) -> GenerationRequest:
    """Return a request of three prompt tokens, with these of its fields set."""
    sampling = SamplingParams(max_tokens=16, seed=7, stop=("END",), stop_token_ids=(2, 3))
    prompt = {"model": MODEL, "prompt_token_ids": (11, 12, 13), "sampling": sampling}
    return GenerationRequest(request_id=RequestId(name), **{**prompt, **fields})


def make_record(name: str, *, session_id: str | None = None, ttl_s: int = 1000) -> ResponseRecord:
    return ResponseRecord(
        response_id=RequestId(name),
        model=MODEL,
        created_at=1_700_000_000,
        ttl_s=ttl_s,
        assistant_message_id=f"answer-of-{name}",
        session_id=session_id,
        request={"temperature": 0.5, "metadata": {"k": "v"}},
        messages=(make_message("system"), make_message("user")),
    )


def make_message(role: str, content: str = "Grüße, 世界 👋🏽\x00\u2028") -> Message:
    return Message(f"message-{role}-{content[:3]}", role, content, 1_700_000_000)


def make_turn(session_id: str, content: str = "How are you?", **fields: Any) -> SessionTurn:
    return SessionTurn(session_id, (make_message("user", content),), **fields)


def turn_of(name: str, session_id: str, **fields: Any) -> SessionTurn:
    """Return a turn whose message is called after its request."""
    message = Message(f"message-of-{name}", "user", "How are you?", 1_700_000_000)
    return SessionTurn(session_id, (message,), **fields)


async def enqueue(
    store: Store,
    *names: str,
    session_id: str | None = None,
    route: str | None = None,
    **fields: Any,
) -> None:
    """Queue requests with these names and fields; in a session, each with a turn of its own."""
    for name in names:
        turn = turn_of(name, session_id) if session_id else None
        record = make_record(name, session_id=session_id)
        request = make_request(name, **fields)
        place = await store.queue.enqueue(
            request, record, max_queue=MAX_QUEUE, turn=turn, route=route
        )
        assert isinstance(place, Place)


async def claim_names(store: Store, worker_id: str, limit: int = 100) -> list[str]:
    claims = await store.queue.claim(worker_id, MODEL, limit, LEASE_MS)
    return [claim.request.request_id for claim in claims]


async def expire_leases(store: Store, *names: str) -> None:
    """Make leases run out now, without waiting for it."""
    for name in names:
        await store.commands.call("ZADD", keys.FIRST.key(keys.LEASES), "XX", 0, name)


async def end_time(store: Store, *names: str) -> None:
    """Make the time of requests with a timeout be over now, without waiting for it."""
    for name in names:
        await store.commands.call("HSET", keys.FIRST.key(keys.REQUEST + name), "deadline_ms", 0)
        await store.commands.call("ZADD", keys.FIRST.key(keys.DEADLINES), "XX", 0, name)


async def grow_older(store: Store, name: str, seconds: int) -> None:
    """Move the enqueue of a waiting request into the past."""
    call = store.commands.call
    request = pairs(await call("HGETALL", keys.FIRST.key(keys.REQUEST + name)))
    line = keys.FIRST.key(keys.line(request["model"], request["tenant"]))
    await call("ZINCRBY", line, -seconds * 1_000_000, name)
    await call("HINCRBY", keys.FIRST.key(keys.REQUEST + name), "score", -seconds * 1_000_000)
    await call("HINCRBY", keys.FIRST.key(keys.REQUEST + name), "enqueued_ms", -seconds * 1000)


def delta(text: str, *token_ids: int) -> LogEvent:
    return LogEvent(EventKind.DELTA, text=text, token_ids=token_ids)


def deltas(name: str, epoch: int, first_sequence: int, *texts: str) -> Append:
    events = tuple(delta(text, first_sequence + i) for i, text in enumerate(texts))
    return Append(RequestId(name), epoch, first_sequence, events)


def ending(
    name: str,
    epoch: int,
    first_sequence: int,
    text: str = "done",
    *,
    reason: FinishReason = FinishReason.STOP,
) -> Append:
    outcome = Outcome(reason, Usage(input_tokens=3, cached_tokens=1, output_tokens=2))
    event = LogEvent(outcome.terminal_kind, outcome=outcome)
    return Append(
        RequestId(name), epoch, first_sequence, (event,), FinalAnswer(text, (21, 22), outcome)
    )


async def append(store: Store, *appends: Append) -> None:
    assert all(await store.log.append(appends))


async def eventually(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Return once `condition` holds; fail when it does not in time."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - conditions of the code under test have no event
            await asyncio.sleep(0.002)


async def check_invariants(store: Store) -> None:
    """Recount what must hold between any two scripts."""
    call = store.commands.call
    leased = set(await call("ZRANGE", keys.FIRST.key(keys.LEASES), 0, -1))
    queued = await recount_queue(store)
    in_flight = await _ids(store, keys.FIRST.key(keys.REQUEST))
    assert queued | leased == in_flight, f"{queued=} {leased=} {in_flight=}"
    assert not queued & leased, f"{queued=} {leased=}"
    for name in in_flight:
        request = pairs(await call("HGETALL", keys.FIRST.key(keys.REQUEST + name)))
        assert ("owner" in request) == (name in leased), request
        last = await call("XREVRANGE", keys.FIRST.key(keys.LOG + name), "+", "-", "COUNT", 1)
        assert last[0][0] == f"{request['next']}-0", f"{name}: {last} {request['next']=}"
    for name in await _ids(store, keys.FIRST.key(keys.RESPONSE)) - in_flight:
        assert await call("HGET", keys.FIRST.key(keys.RESPONSE + name), "outcome"), (
            f"{name} has not ended"
        )
    for session_id in await _ids(store, keys.FIRST.key(keys.SESSION)):
        session = keys.FIRST.key(keys.SESSION + session_id)
        active = (await call("HGET", session, "active_response_ids") or "").split()
        assert set(active) <= in_flight, f"{session_id}: {active=}"


async def _ids(store: Store, prefix: str) -> set[str]:
    return {key.removeprefix(prefix) for key in await store.commands.call("KEYS", prefix + "*")}
