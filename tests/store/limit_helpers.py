"""Requests under limits, a clock that their tests turn forward, and what was counted of them."""

from datetime import date, timedelta
from typing import Any

import pytest
from store.store_helpers import LEASE_MS, MAX_QUEUE, MODEL, OWNER, make_record, make_request

from chatserve.engine.api import EventKind, FinishReason, LogEvent, Outcome, RequestId, Usage
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Full, Place
from chatserve.store.limits import Limited, Reservation, ScopeLimits
from chatserve.store.response_log import Append, FinalAnswer
from chatserve.store.usage import UsageRow, Used

TENANT = OWNER.tenant
PROMPT_LEN = 3


def tenant_limits(**limits: int) -> ScopeLimits:
    return ScopeLimits(f"tenant:{TENANT}", **limits)


def key_limits(**limits: int) -> ScopeLimits:
    return ScopeLimits("key:k1", **limits)


async def ask(
    store: Store,
    name: str,
    *scopes: ScopeLimits,
    tokens: int = 10,
    together: int = 1,
    **fields: Any,
) -> Place | Full | Limited:
    """Queue a request that reserves so many tokens of these scopes."""
    return await store.queue.enqueue(
        make_request(name, **{"tenant": TENANT, **fields}),
        make_record(name),
        max_queue=MAX_QUEUE,
        reservation=Reservation(scopes, tokens, together),
    )


async def is_taken(store: Store, name: str, *scopes: ScopeLimits, **fields: Any) -> bool:
    return isinstance(await ask(store, name, *scopes, **fields), Place)


async def claim_all(store: Store, worker_id: str = "w") -> dict[str, int]:
    """Lease whatever waits; return the epoch of each."""
    claims = await store.queue.claim(worker_id, MODEL, MAX_QUEUE, LEASE_MS)
    return {claim.request.request_id: claim.epoch for claim in claims}


def end_of(name: str, num_output: int, *, epoch: int = 1, first_sequence: int = 2) -> Append:
    """Return the end of an answer of so many tokens."""
    usage = Usage(input_tokens=PROMPT_LEN, cached_tokens=1, output_tokens=num_output)
    outcome = Outcome(FinishReason.STOP, usage)
    ids = tuple(range(num_output))
    return Append(
        RequestId(name),
        epoch,
        first_sequence,
        (LogEvent(EventKind.COMPLETED, outcome=outcome),),
        FinalAnswer("done", ids, outcome),
    )


def about(tokens: int) -> Any:
    """Return what equals a number of tokens, and those that run down while a test runs."""
    return pytest.approx(tokens + 1, abs=2)


async def remaining_tokens(store: Store, *scopes: ScopeLimits) -> int:
    allowances = await store.limits.read(TENANT, scopes)
    assert allowances.tokens is not None
    return allowances.tokens.remaining


async def pass_time(store: Store, seconds: float) -> None:
    """Move all that limits remember into the past, without waiting for it."""
    call = store.commands.call
    for key in await call("KEYS", keys.FIRST.key(keys.METERS + "*")):
        await call("HINCRBY", key, "at", -round(seconds * 1e6))
    for key in await call("KEYS", keys.FIRST.key(keys.REQUEST + "*")):
        await call("HINCRBY", key, "enqueued_ms", -round(seconds * 1e3))


async def rows_of(store: Store, tenant: str = TENANT) -> list[UsageRow]:
    """Return what was counted around now, so that a test may run over midnight."""
    today = date.today()
    return await store.usage.read(tenant, today - timedelta(days=1), today + timedelta(days=1))


async def total_of(store: Store) -> Used:
    return sum((row.used for row in await rows_of(store)), Used())


async def total_of_responses(store: Store, *names: str) -> Used:
    total = Used()
    for name in names:
        record = await store.responses.get(RequestId(name))
        assert record is not None
        assert record.outcome is not None
        usage = record.outcome.usage
        total += Used(1, usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    return total
