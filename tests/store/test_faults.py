"""Connections that are lost at every command, callers that are cancelled, servers that restart."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from store.cutting_proxy import Cut, CuttingProxy
from store.store_helpers import (
    MODEL,
    OWNER,
    append,
    check_invariants,
    claim_names,
    deltas,
    ending,
    enqueue,
    eventually,
    messages_of,
)

from chatserve.engine.api import RequestId
from chatserve.errors import StoreError
from chatserve.store.claim import Claim
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.log_reader import LogReader
from chatserve.store.queue import Cursor
from chatserve.store.responses import ResponseStatus

A = RequestId("a")
MAX_COMMANDS = 60


async def until_untouched(
    server: EmbeddedServer,
    folder: Path,
    cut: Cut,
    scenario: Callable[[Store, Store], Awaitable[None]],
) -> int:
    """Run a scenario with its 1st, 2nd, … command cut until none was; return how many were.

    The scenario gets a store behind the proxy and one that is not.
    """
    direct = await open_store(server.url)
    upstream = Path(server.url.removeprefix("unix://").removesuffix("?db=0"))
    for cut_at in range(1, MAX_COMMANDS):
        await direct.commands.call("FLUSHALL")
        proxy = CuttingProxy(folder / f"{cut_at}.sock", upstream, {cut_at: cut}.get)
        async with proxy.running() as url:
            flaky = await open_store(url)
            await scenario(flaky, direct)
            await flaky.aclose()
        if not proxy.num_cuts:
            await direct.aclose()
            return cut_at - 1
    raise AssertionError(f"the scenario has more than {MAX_COMMANDS} commands")


async def claim_surely(store: Store) -> Claim:
    """Claim one request; one whose claim was lost comes back through the reaper."""
    while not (claims := await store.queue.claim("w", MODEL, 1, 0)):
        await store.queue.reap()
    return claims[0]


@pytest.mark.parametrize("cut", list(Cut))
async def test_turn_survives_a_connection_lost_at_any_command(
    server: EmbeddedServer, tmp_path: Path, cut: Cut
) -> None:
    async def one_turn(store: Store, direct: Store) -> None:
        await store.sessions.create(OWNER, "s")
        await enqueue(store, "a", session_id="s")
        claim = await claim_surely(store)
        await append(store, deltas("a", claim.epoch, 2, "x", "y"))
        await append(store, ending("a", claim.epoch, 4, "xy"))

        record = await direct.responses.get(A)
        assert record is not None
        assert (record.status, record.output_text) == (ResponseStatus.COMPLETED, "xy")
        assert [e.sequence_number for e in await direct.log.read(A)] == [0, 1, 2, 3, 4]
        messages = await messages_of(direct, "s")
        assert [message.role for message in messages] == ["user", "assistant"]
        await check_invariants(direct)

    num_cuts = await until_untouched(server, tmp_path, cut, one_turn)

    assert num_cuts >= 6


@pytest.mark.parametrize("cut", list(Cut))
async def test_follower_survives_a_connection_lost_at_any_command(
    server: EmbeddedServer, tmp_path: Path, cut: Cut
) -> None:
    async def follow(store: Store, direct: Store) -> None:
        reader = LogReader(store)
        reader.start()
        await enqueue(direct, "a")
        await claim_names(direct, "w")

        async def collect() -> list[int]:
            return [entry.sequence_number async for entry in reader.follow(A)]

        following = asyncio.create_task(collect())
        for i in range(5):
            await append(direct, deltas("a", 1, 2 + i, "x"))
            await asyncio.sleep(0.002)  # let some be read live and some from pages
        await append(direct, ending("a", 1, 7))
        async with asyncio.timeout(10):
            assert await following == list(range(8))
        await reader.aclose()

    num_cuts = await until_untouched(server, tmp_path, cut, follow)

    assert num_cuts >= 3


async def test_cancelled_callers_never_get_or_leave_the_reply_of_another(store: Store) -> None:
    await store.commands.call("SET", "x", "right")
    await store.commands.call("SET", "y", "wrong")
    for storm in range(30):
        victims = [asyncio.create_task(store.commands.call("GET", "y")) for _ in range(20)]
        victims += [asyncio.create_task(store.commands.call_many([("GET", "y")] * 3))]
        for _ in range(storm % 10):
            await asyncio.sleep(0)
        for victim in victims:
            victim.cancel()
        results = await asyncio.gather(*victims, return_exceptions=True)
        assert all(r in ("wrong", ["wrong"] * 3) or isinstance(r, BaseException) for r in results)

        replies = await asyncio.gather(*(store.commands.call("GET", "x") for _ in range(20)))
        assert replies == ["right"] * 20


async def test_cancelled_wait_for_work_is_cancelled(store: Store) -> None:
    """redis-py's own socket timeout used to swallow a good part of these on Python 3.11."""
    waits = [
        asyncio.create_task(store.queue.wait_for_work("w", MODEL, Cursor(), 60_000))
        for _ in range(10)
    ]
    for i in range(10):
        await asyncio.sleep(0.001 * i)
        waits[i].cancel()

    async with asyncio.timeout(10):
        results = await asyncio.gather(*waits, return_exceptions=True)

    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    await store.probe()


async def test_many_callers_share_a_bounded_number_of_connections(store: Store) -> None:
    calls = (store.commands.call("INCRBY", f"number-{i}", i) for i in range(500))

    replies = await asyncio.gather(*calls)

    assert replies == list(range(500))
    clients = await store.commands.call("CLIENT LIST")
    assert len(clients.splitlines()) <= 20


async def test_wait_for_work_fails_when_the_server_goes(
    own_server: EmbeddedServer, own_store: Store
) -> None:
    waiting = asyncio.create_task(own_store.queue.wait_for_work("w", MODEL, Cursor(), 60_000))
    async with asyncio.timeout(10):
        while "cmd=xread" not in await own_store.commands.call("CLIENT LIST"):
            pass

    await own_server.stop()

    async with asyncio.timeout(10):
        with pytest.raises(StoreError):
            await waiting


async def test_answer_goes_on_after_a_restart_of_the_server(
    own_server: EmbeddedServer, own_store: Store
) -> None:
    reader = LogReader(own_store)
    reader.start()
    await own_store.sessions.create(OWNER, "s")
    await enqueue(own_store, "a", session_id="s")
    await claim_names(own_store, "w")
    await append(own_store, deltas("a", 1, 2, "x"))
    numbers: list[int] = []

    async def collect() -> None:
        async for entry in reader.follow(A):
            numbers.append(entry.sequence_number)

    following = asyncio.create_task(collect())
    await eventually(lambda: len(numbers) == 3)

    await own_server.stop()
    await own_server.start()
    await append(own_store, deltas("a", 1, 3, "y"))
    await append(own_store, ending("a", 1, 4))

    async with asyncio.timeout(20):
        await following
    assert numbers == [0, 1, 2, 3, 4]
    assert len(await messages_of(own_store, "s")) == 2
    await check_invariants(own_store)
    await reader.aclose()
