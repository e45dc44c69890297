"""The processes of a run: how they are started, and how much processor and memory each takes.

Owns the children until the run ends. Knows nothing of loads.
"""

import asyncio
import bisect
import os
import socket
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from chatserve.store.embedded import EmbeddedServer

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SAMPLE_EVERY_S = 0.2
_START_TIMEOUT_S = 30.0
_MAX_QUEUE = "100000"

# Streams whose client has gone end at once, and do not burden the next load.
_IMPATIENT = ("--drain", "0", "--disconnect-grace", "0")


class CpuClock:
    """The processor time of one process, sampled as it runs.

    Owns: the samples. Used from: the event loop.
    """

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._times: list[float] = []
        self._cpu_s: list[float] = []

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            fields = self._stat.read_text().rpartition(") ")[2].split()
            self._times.append(time.monotonic())
            self._cpu_s.append((int(fields[11]) + int(fields[12])) / _TICKS_PER_S)
            await asyncio.sleep(_SAMPLE_EVERY_S)

    def share(self, started: float, ended: float) -> float:
        """Return how much of one processor it took between two times."""
        first = max(0, bisect.bisect(self._times, started) - 1)
        last = bisect.bisect(self._times, ended) - 1
        elapsed = self._times[last] - self._times[first]
        return (self._cpu_s[last] - self._cpu_s[first]) / elapsed if elapsed else 0.0


@dataclass(frozen=True, slots=True)
class Running:
    """A gateway with its store and its source."""

    port: int
    gateway_pid: int
    clocks: dict[str, CpuClock]

    def shares(self, started: float, ended: float) -> dict[str, float]:
        """Return the processor shares of all by name."""
        return {name: clock.share(started, ended) for name, clock in self.clocks.items()}

    def gateway_rss_bytes(self) -> int:
        pages = Path(f"/proc/{self.gateway_pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@asynccontextmanager
async def running_gateway() -> AsyncIterator[Running]:
    """Start store, source and one gateway, each as a process; stop them in the end."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="chatserve-bench-"))
        store = EmbeddedServer(Path(folder))
        await store.start()
        stack.push_async_callback(store.stop)
        source = await stack.enter_async_context(
            running("-m", "benchmarks.gateway.source", store.url)
        )
        port = free_port()
        flags = ("--redis-url", store.url, "--port", str(port), "--max-queue", _MAX_QUEUE)
        gateway = await stack.enter_async_context(
            running("-m", "chatserve", "gateway", *flags, *_IMPATIENT, "--log-level", "warning")
        )
        await until_ready(f"http://127.0.0.1:{port}/ready")
        assert store.pid is not None, "a store that was started has a process"
        pids = {"gateway": gateway.pid, "source": source.pid, "store": store.pid}
        clocks = {name: CpuClock(pid) for name, pid in pids.items()}
        for clock in clocks.values():
            stack.callback(asyncio.create_task(clock.run()).cancel)
        yield Running(port, gateway.pid, clocks)


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Process]:
    """Run Python with these arguments, and end it afterwards."""
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def output_of(*arguments: str) -> bytes:
    """Run Python with these arguments to its end, and return what it printed."""
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{arguments} ended with {process.returncode}"
    return output


async def until_ready(url: str) -> None:
    """Return once the address answers with 200."""
    async with asyncio.timeout(_START_TIMEOUT_S), httpx.AsyncClient() as http:
        while True:
            try:
                if (await http.get(url)).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
