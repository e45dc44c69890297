"""A whole service for one test: a real store, a real worker on a fake model, a real server.

`Service` is what a test holds. Its clients talk through sockets, so what a test sees is what a
client would see.
"""

import asyncio
import json
import socket as sockets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
import uvicorn
import websockets
from gateway.fake_model import FakeModel, make_card
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close

from chatserve.config import GatewayConfig
from chatserve.engine.api import ModelCard, Outcome, RequestId
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.fake import build_fake_engine
from chatserve.engine.scheduler import SchedulerConfig
from chatserve.engine.worker import Worker, WorkerOptions, WorkerTimes
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.gateway.connection_limits import ConnectionLimits
from chatserve.gateway.server import create_server
from chatserve.gateway.services import Services, open_services
from chatserve.listener import bind
from chatserve.store import keys
from chatserve.store.connection import Store, open_store
from chatserve.text.tokenizer import Tokenizer

Event = dict[str, Any]

NUM_PAGES = 512
TIMEOUT_S = 20.0


class EngineRecipe(Protocol):
    """How to build an engine other than the usual fake one."""

    def build(self, model: FakeModel) -> EngineThread: ...


BRISK = WorkerTimes(listen_ms=200, beat_s=0.2, snapshot_s=0.05)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a test may say about its worker."""

    card: ModelCard = field(default_factory=make_card)
    max_num_seqs: int = 8
    max_claims: int = 16
    metrics_url: str | None = None
    engine: EngineRecipe | None = None
    step_s: float = 0.0
    times: WorkerTimes = BRISK


@dataclass(slots=True)
class Service:
    """A running gateway and its worker. Mutable: a test may stop the worker."""

    services: Services
    server: uvicorn.Server
    port: int
    model: FakeModel
    engine: EngineThread
    stop_worker: asyncio.Event
    http: httpx.AsyncClient

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def store(self) -> Store:
        return self.services.store

    def spawn(self, work: Coroutine[Any, Any, httpx.Response]) -> asyncio.Task[httpx.Response]:
        """Run a request next to the test."""
        return asyncio.create_task(work)

    async def wait_until_held(self) -> None:
        """Return once the engine stands at the model's closed gate."""
        await eventually(lambda: self.model.is_waiting)

    async def metric(self, name: str) -> float:
        """Return a metric without labels from the gateway's page."""
        page = (await self.http.get("/metrics")).text
        return next(
            float(line.split()[1]) for line in page.splitlines() if line.startswith(f"{name} ")
        )

    async def wait_until_read_by(self, num_readers: int) -> None:
        """Return once this many readers of answers are with this gateway."""
        async with asyncio.timeout(TIMEOUT_S):
            while await self.metric("chatserve_readers") != num_readers:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.02)

    async def wait_until_unread(self) -> None:
        """Return once nobody reads an answer through this gateway."""
        await self.wait_until_read_by(0)

    async def wait_until_idle(self) -> None:
        """Return once the engine holds nothing; fail when it keeps something."""
        await eventually(lambda: self.engine.stats().requests_running == 0)
        stats = self.engine.stats()
        assert stats.pages_used == 0, stats
        assert stats.pages_free + stats.pages_cached == NUM_PAGES, stats

    @asynccontextmanager
    async def socket(self, **options: Any) -> AsyncIterator["Socket"]:
        """Open a WebSocket and read its first frame."""
        uri = f"ws://127.0.0.1:{self.port}/v1/responses"
        async with websockets.connect(uri, max_size=None, **options) as connection:
            socket = Socket(connection)
            socket.opened = await socket.receive()
            yield socket


class Socket:
    """A client's end of a WebSocket that speaks in events."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.opened: Event = {}

    async def send(self, kind: str, **members: Any) -> None:
        await self.connection.send(json.dumps({"type": kind, **members}))

    async def create(self, text: str, **members: Any) -> None:
        await self.send("response.create", **{"model": "echo", "input": text, **members})

    async def receive(self) -> Event:
        async with asyncio.timeout(TIMEOUT_S):
            event: Event = json.loads(await self.connection.recv())
        return event

    async def receive_until(self, *kinds: str) -> list[Event]:
        """Return events up to the first of these kinds."""
        events = [await self.receive()]
        while events[-1]["type"] not in kinds:
            events.append(await self.receive())
        return events

    async def receive_texts(self, num_texts: int) -> list[Event]:
        """Return events up to the one with which that many characters have come."""
        events: list[Event] = []
        while len(text_of(events)) < num_texts:
            events.append(await self.receive())
        return events

    async def receive_close(self) -> Close:
        """Read to the end, and return the close frame with which it came."""
        async with asyncio.timeout(TIMEOUT_S):
            with suppress(ConnectionClosed):
                while True:
                    await self.connection.recv()
        close = self.connection.protocol.close_rcvd
        assert close is not None, "the connection ended without a close frame"
        return close

    async def receive_answer(self) -> list[Event]:
        """Return events up to a terminal one, or to an error."""
        return await self.receive_until(
            "response.completed", "response.incomplete", "response.failed", "error"
        )


def text_of(events: list[Event]) -> str:
    return "".join(event["delta"] for event in events if event["type"].endswith("text.delta"))


def kinds_of(events: list[Event]) -> list[str]:
    return [event["type"] for event in events]


def sse_data(body: str) -> list[str]:
    """Return the payloads of an event stream."""
    return [line.removeprefix("data: ") for line in body.split("\n") if line.startswith("data: ")]


def chat(text: str, **members: Any) -> Event:
    """Return a chat body with one user message."""
    return {"model": "echo", "messages": [{"role": "user", "content": text}], **members}


async def response_ids(store: Store) -> set[RequestId]:
    """Return the ids of all responses in the store."""
    found = await store.commands.call("KEYS", keys.FIRST.key(keys.RESPONSE + "*"))
    return {RequestId(key.removeprefix(keys.FIRST.key(keys.RESPONSE))) for key in found}


async def outcome_of(store: Store, response_id: str) -> Outcome:
    """Return how an answer ended, waiting for it."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            record = await store.responses.get(RequestId(response_id))
            if record is not None and record.outcome is not None:
                return record.outcome
            await asyncio.sleep(0.005)


async def first_response_id(store: Store) -> RequestId:
    """Return the id of the one response in the store, waiting for it."""
    async with asyncio.timeout(TIMEOUT_S):
        while not (found := await response_ids(store)):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
    assert len(found) == 1, found
    return found.pop()


async def eventually(condition: Callable[[], bool]) -> None:
    """Return once `condition` holds; fail when it does not in time."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - the things waited for have no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def run_service(
    store_url: str,
    *,
    worker: WorkerSettings | None = None,
    limits: ConnectionLimits | None = None,
    send_buffer_bytes: int | None = None,
    **config: Any,
) -> AsyncIterator[Service]:
    """Run a gateway with these settings over one worker.

    A small `send_buffer_bytes` lets a test fill the way to a client that does not read.
    """
    gateway_config = GatewayConfig(redis_url=store_url, **{"titles": "words", **config})
    settings = worker or WorkerSettings()
    model = FakeModel()
    engine = _build_engine(model, settings)
    stop_worker = asyncio.Event()
    async with (
        open_services(gateway_config, limits) as services,
        _worker(services, engine, settings, stop_worker),
        _server(services, send_buffer_bytes) as (server, port),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_S) as http,
    ):
        try:
            yield Service(services, server, port, model, engine, stop_worker, http)
        finally:
            model.release()


def _build_engine(model: FakeModel, settings: WorkerSettings) -> EngineThread:
    if settings.engine is not None:
        return settings.engine.build(model)
    config = SchedulerConfig(
        max_num_seqs=settings.max_num_seqs,
        max_num_batched_tokens=512,
        max_model_len=settings.card.max_model_len,
        eos_token_ids=frozenset(settings.card.eos_token_ids),
    )
    tokenizer = Tokenizer.from_card(settings.card)
    return build_fake_engine(
        tokenizer, config, model.next_token, num_pages=NUM_PAGES, step_s=settings.step_s
    )


@asynccontextmanager
async def _worker(
    services: Services, engine: EngineThread, settings: WorkerSettings, stop: asyncio.Event
) -> AsyncIterator[None]:
    options = WorkerOptions(
        worker_id="worker-1",
        max_claims=settings.max_claims,
        metrics_url=settings.metrics_url,
        times=settings.times,
    )
    # A store of its own, as a worker has: a test may make the gateway's fail.
    store = await open_store(services.config.redis_url)
    worker = Worker(store, engine, settings.card, WorkerMetrics(engine.stats), options)
    running = asyncio.create_task(worker.run(stop))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not services.models.live:
                await services.models.refresh()
                await asyncio.sleep(0.005)
        yield
    finally:
        stop.set()
        await running
        await store.aclose()


@asynccontextmanager
async def _server(
    services: Services, send_buffer_bytes: int | None
) -> AsyncIterator[tuple[uvicorn.Server, int]]:
    listener = bind("127.0.0.1", 0)
    if send_buffer_bytes is not None:  # accepted connections inherit it
        listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF, send_buffer_bytes)
    server = create_server(services)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await eventually(lambda: server.started or serving.done())
        yield server, listener.getsockname()[1]
    finally:
        server.should_exit = True
        await serving
        listener.close()
