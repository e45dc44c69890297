"""A whole service in processes of its own, to be broken: store, gateways, workers.

Owns the processes and what a test may do to them. What a client sees is `drill_client.py`'s.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from e2e.real_service import free_port

from chatserve.store.embedded import EmbeddedServer

TIMEOUT_S = 30.0
STEP_S = 0.01

TESTS = Path(__file__).parent.parent
FAKE_WORKER = TESTS / "e2e" / "fake_worker.py"


@dataclass(slots=True)
class DrillService:
    """The processes of one test. Mutable: a test kills them and starts others.

    `store_url` is where gateways and workers find the store, which may be a proxy.
    """

    folder: Path
    store: EmbeddedServer
    store_url: str
    processes: list[Process] = field(default_factory=list)
    workers: dict[str, Process] = field(default_factory=dict)
    gateways: dict[int, Process] = field(default_factory=dict)

    async def start_worker(self, name: str) -> None:
        """Start a worker that hangs while `hang_file(name)` exists."""
        self.workers[name] = await self._spawn(
            str(FAKE_WORKER), self.store_url, name, str(STEP_S), str(self.hang_file(name))
        )

    async def start_gateway(self) -> int:
        """Start a gateway and return its port."""
        port = free_port()
        settings = ("--port", str(port), "--redis-url", self.store_url)
        more = ("--merge-worker-metrics", "--log-level", "warning")
        self.gateways[port] = await self._spawn("-m", "chatserve", "gateway", *settings, *more)
        return port

    def hang_file(self, name: str) -> Path:
        return self.folder / f"{name}.hang"

    async def kill(self, process: Process) -> None:
        process.kill()
        await process.wait()

    async def until_ready(self, port: int, *, is_ready: bool = True) -> None:
        """Return once a gateway says that it is ready, or that it is not."""
        wanted = 200 if is_ready else 503
        async with asyncio.timeout(TIMEOUT_S), httpx.AsyncClient(timeout=10) as http:
            while True:
                try:
                    reply = await http.get(f"http://127.0.0.1:{port}/ready")
                except httpx.TransportError:
                    pass
                else:
                    if reply.status_code == wanted:
                        return
                await asyncio.sleep(0.05)

    async def until_pages_are_free(self, port: int) -> None:
        """Return once no worker that lives holds a page for a request."""
        async with asyncio.timeout(TIMEOUT_S), httpx.AsyncClient(timeout=10) as http:
            while True:
                page = (await http.get(f"http://127.0.0.1:{port}/metrics")).text
                used = [
                    float(line.rsplit(" ", 1)[1])
                    for line in page.splitlines()
                    if line.startswith("chatserve_kv_pages{") and 'state="used"' in line
                ]
                if used and not any(used):
                    return
                await asyncio.sleep(0.05)

    async def kill_store(self) -> None:
        """End the store's process without a word, and return when it is gone."""
        assert self.store.pid is not None
        os.kill(self.store.pid, signal.SIGKILL)
        await self.store.wait()

    @asynccontextmanager
    async def paused_store(self, seconds: float) -> AsyncIterator[None]:
        """Stop the store's process for so long at least, as a machine that swaps does."""
        assert self.store.pid is not None
        os.kill(self.store.pid, signal.SIGSTOP)
        pause = asyncio.create_task(asyncio.sleep(seconds))
        try:
            yield
            await pause
        finally:
            os.kill(self.store.pid, signal.SIGCONT)

    async def stop_all(self) -> None:
        for process in self.processes:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def _spawn(self, *arguments: str) -> Process:
        log = (self.folder / f"{len(self.processes)}.log").open("wb")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(TESTS), "CHATSERVE_TITLES": "words"},
            start_new_session=True,
        )
        log.close()
        self.processes.append(process)
        return process


@asynccontextmanager
async def drill_service(
    folder: Path, *, num_workers: int, num_gateways: int, store_url: str | None = None
) -> AsyncIterator[DrillService]:
    """Run a service until the test ends. `store_url` is a proxy's, which the test runs."""
    store = EmbeddedServer(folder / "store")
    await store.start()
    service = DrillService(folder, store, store_url or store.url)
    try:
        for number in range(num_workers):
            await service.start_worker(f"worker-{number}")
        for _ in range(num_gateways):
            await service.start_gateway()
        for port in service.gateways:
            await service.until_ready(port)
        yield service
    finally:
        await service.stop_all()
        await store.stop()
