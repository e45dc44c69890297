"""Things that break while an answer is on its way, and the answer that comes all the same.

In each drill a client asks in a conversation, something is killed, hung, paused, restarted, cut or
filled up in the middle, and then: the answer is whole and without a seam, it stands in the
conversation once, below the message that asked, no page is held, and readiness tells the truth.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.drill_client import (
    DrillClient,
    create_conversation,
    messages_of,
)
from e2e.drill_service import DrillService, drill_service
from store.cutting_proxy import Cut, CuttingProxy

from chatserve.store.connection import open_store
from chatserve.store.embedded_files import socket_path

TEXT = " ".join(f"{number:03}" for number in range(120))
BEGUN = 40
"""Characters after which an answer counts as begun; there are twelve times as many."""


@dataclass(slots=True)
class Drill:
    """A service with one answer in its middle."""

    service: DrillService
    ports: list[int]
    conversation: str
    client: DrillClient
    reading: asyncio.Task[None]

    async def check(self) -> None:
        """Check all that must hold once the answer has ended."""
        await self.reading
        assert self.client.text == TEXT
        assert self.client.events[-1]["type"] == "response.completed"
        port = next(iter(self.service.gateways))
        await self.service.until_ready(port)
        assert await messages_of(port, self.conversation) == [("user", TEXT), ("assistant", TEXT)]
        await self.service.until_pages_are_free(port)


@asynccontextmanager
async def drill(
    folder: Path, *, num_workers: int = 1, num_gateways: int = 1, store_url: str | None = None
) -> AsyncIterator[Drill]:
    async with drill_service(
        folder, num_workers=num_workers, num_gateways=num_gateways, store_url=store_url
    ) as service:
        ports = list(service.gateways)
        conversation = (await create_conversation(ports[0])).json()["id"]
        client = DrillClient(ports, conversation, TEXT)
        reading = asyncio.create_task(client.run())
        await client.until_text(BEGUN)
        assert not client.has_ended
        yield Drill(service, ports, conversation, client, reading)
        reading.cancel()


async def owner_of(service: DrillService) -> str:
    """Return the name of the worker that runs the one request."""
    store = await open_store(service.store.url)
    (key,) = await store.commands.call("KEYS", "cs:{0}:request:*")
    owner: str = await store.commands.call("HGET", key, "owner")
    await store.aclose()
    return owner


async def test_worker_that_is_killed_leaves_no_seam(tmp_path: Path) -> None:
    async with drill(tmp_path, num_workers=2) as running:
        victim = running.service.workers.pop(await owner_of(running.service))

        await running.service.kill(victim)

        await running.service.until_ready(running.ports[0])
        await running.check()
        assert running.client.num_connections == 1


async def test_worker_whose_engine_hangs_is_taken_over(tmp_path: Path) -> None:
    async with drill(tmp_path, num_workers=2) as running:
        name = await owner_of(running.service)

        running.service.hang_file(name).touch()

        await running.reading
        running.service.hang_file(name).unlink()
        await running.check()


async def test_readiness_fails_while_the_only_engine_hangs(tmp_path: Path) -> None:
    async with drill(tmp_path) as running:
        running.service.hang_file("worker-0").touch()

        await running.service.until_ready(running.ports[0], is_ready=False)

        running.service.hang_file("worker-0").unlink()
        await running.check()


async def test_gateway_that_is_killed_is_replaced_by_another(tmp_path: Path) -> None:
    async with drill(tmp_path, num_gateways=2) as running:
        victim = running.service.gateways.pop(running.ports[0])

        await running.service.kill(victim)

        await running.service.until_ready(running.ports[1])
        await running.check()
        assert running.client.num_connections > 1


async def test_store_that_restarts_loses_nothing(tmp_path: Path) -> None:
    async with drill(tmp_path) as running:
        await running.service.store.stop()
        await running.service.until_ready(running.ports[0], is_ready=False)
        await running.service.store.start()

        await running.check()


async def test_store_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    async with drill(tmp_path) as running:
        await running.service.kill_store()
        await running.service.until_ready(running.ports[0], is_ready=False)
        await running.service.store.start()

        await running.check()


async def test_store_that_stands_still_for_five_seconds_costs_five_seconds(tmp_path: Path) -> None:
    async with drill(tmp_path) as running:
        async with running.service.paused_store(5.0):
            await running.service.until_ready(running.ports[0], is_ready=False)

        await running.check()


@pytest.mark.parametrize("period", [7, 20])
async def test_every_nth_command_may_be_lost(tmp_path: Path, period: int) -> None:
    def decide(number: int) -> Cut | None:
        if number % period:
            return None
        return Cut.BEFORE if number // period % 2 else Cut.AFTER

    proxy = CuttingProxy(tmp_path / "cut.sock", socket_path(tmp_path / "store"), decide)
    async with proxy.running() as url, drill(tmp_path, store_url=url) as running:
        await running.check()
        assert proxy.num_cuts > 3


async def test_full_store_refuses_new_work_and_finishes_what_it_has(tmp_path: Path) -> None:
    async with drill(tmp_path) as running:
        store = await open_store(running.service.store.url)
        await store.commands.call("CONFIG", "SET", "maxmemory", "1mb")

        await running.reading

        assert running.client.text == TEXT
        await running.service.until_ready(running.ports[0], is_ready=False)
        refusal = await create_conversation(running.ports[0])
        assert refusal.status_code == 503, refusal.text
        await store.commands.call("CONFIG", "SET", "maxmemory", "0")
        await running.check()
        await store.aclose()
