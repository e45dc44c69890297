"""How many connections a tenant and a key may have, and how one too many is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import websockets
from gateway.gateway_helpers import Socket, run_service
from gateway.limited_service import TENANT, Caller, limited_service, secret_of
from websockets.exceptions import InvalidStatus

from chatserve.gateway import connection_counts
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.tenants import NO_QUOTAS, Quotas

TWO = Quotas(connections=2)


@asynccontextmanager
async def unknown_socket(caller: Caller) -> AsyncIterator[Socket]:
    """Open a socket that does not say whose it is, and say so in the first message."""
    uri = f"ws://127.0.0.1:{caller.service.port}/v1/responses"
    async with websockets.connect(uri) as connection:
        socket = Socket(connection)
        await socket.send("chatserve:auth", token=caller.secret)
        yield socket


async def num_counted(store: Store, scope: str = f"tenant:{TENANT}") -> int:
    key = store.partitions.of_tenant(TENANT).key(keys.CONNECTIONS + scope)
    return int(await store.commands.call("ZCARD", key))


async def wait_until_counted(store: Store, number: int) -> None:
    async with asyncio.timeout(10):
        while await num_counted(store) != number:  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.005)


async def test_one_too_many_is_refused_before_its_upgrade(store_url: str) -> None:
    async with limited_service(store_url, TWO) as caller, caller.socket(), caller.socket():
        with pytest.raises(InvalidStatus) as refused:
            async with caller.socket():
                pass

    response = refused.value.response
    assert (response.status_code, response.headers["retry-after"]) == (429, "5")
    assert b"this tenant has 2 connections open, which is its limit" in response.body


async def test_stream_of_an_answer_counts_as_a_connection(store_url: str) -> None:
    async with limited_service(store_url, Quotas(connections=1)) as caller:
        caller.service.model.hold()
        async with caller.socket() as socket:
            await socket.create("Hello", background=True)
            created = await socket.receive()
            path = f"/v1/responses/{created['response']['id']}"
            refused = await caller.get(path, stream="true")
        await wait_until_counted(caller.service.store, 0)
        async with caller.service.http.stream(
            "GET", path, params={"stream": "true"}, headers=caller.headers
        ) as reply:
            num_counted_meanwhile = await num_counted(caller.service.store)
        caller.service.model.release()

    assert (refused.status_code, reply.status_code) == (429, 200)
    assert num_counted_meanwhile == 1


async def test_place_is_free_again_when_a_connection_ends(store_url: str) -> None:
    async with limited_service(store_url, Quotas(connections=1)) as caller:
        async with caller.socket():
            pass
        await wait_until_counted(caller.service.store, 0)

        async with caller.socket() as socket:
            await socket.send("chatserve:ping", t=1)
            assert (await socket.receive())["type"] == "chatserve:pong"


async def test_one_that_is_known_by_its_first_message_is_closed_with_4429(store_url: str) -> None:
    async with (
        limited_service(store_url, Quotas(connections=1)) as caller,
        unknown_socket(caller) as first,
    ):
        assert (await first.receive())["type"] == "chatserve:connection.opened"
        async with unknown_socket(caller) as second:
            close = await second.receive_close()

    assert (close.code, close.reason) == (
        4429,
        "this tenant has 1 connections open, which is its limit",
    )


async def test_limits_of_tenant_and_key_hold_together(store_url: str) -> None:
    async with limited_service(store_url, TWO, of_key=Quotas(connections=1)) as ann:
        bob = Caller(ann.service, await secret_of(ann.service.store, "bob"))
        async with ann.socket():
            with pytest.raises(InvalidStatus, match="429"):
                async with ann.socket():
                    pass
            async with bob.socket():
                with pytest.raises(InvalidStatus, match="429"):
                    async with bob.socket():
                        pass


async def test_connections_through_all_gateways_are_one_number(store_url: str) -> None:
    async with (
        limited_service(store_url, Quotas(connections=1)) as caller,
        run_service(store_url) as other,
        caller.socket(),
    ):
        with pytest.raises(InvalidStatus, match="429"):
            async with Caller(other, caller.secret).socket():
                pass


async def test_gateway_renews_what_it_has_open(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_counts, "RENEW_S", 0.01)
    async with limited_service(store_url, TWO) as caller, caller.socket():
        await caller.service.store.commands.call("FLUSHALL")

        await wait_until_counted(caller.service.store, 1)


async def test_where_nothing_is_limited_nothing_is_counted(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller, caller.socket():
        assert await num_counted(caller.service.store) == 0


async def test_gateway_that_stops_gives_its_places_back(store_url: str) -> None:
    async with (
        limited_service(store_url, Quotas(connections=1)) as caller,
        run_service(store_url) as other,
        Caller(other, caller.secret).socket(),
    ):
        assert await num_counted(caller.service.store) == 1
        other.server.should_exit = True
        await wait_until_counted(caller.service.store, 0)
