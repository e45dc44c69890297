"""Watching a supervisor from outside: its log, its children, and whether they still live."""

import asyncio
import os
import re
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

TIMEOUT_S = 60.0
STARTED = re.compile(r"started the (\w+), process (\d+)")


class Watched:
    """A running supervisor whose output is read line by line."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.lines: list[str] = []

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def pids(self) -> dict[str, int]:
        """The latest pid of each child, by name, as the log tells them."""
        return {name: int(pid) for name, pid in STARTED.findall(self.output)}

    async def wait_for(self, text: str, *, times: int = 1) -> None:
        """Read on until `text` has come `times` times in all."""
        assert self.process.stdout is not None
        async with asyncio.timeout(TIMEOUT_S):
            while self.output.count(text) < times:
                line = await self.process.stdout.readline()
                assert line, f"ended without {text!r}:\n{self.output}"
                self.lines.append(line.decode())

    async def wait_for_end(self) -> int:
        """Read the rest, and return the exit code."""
        assert self.process.stdout is not None
        async with asyncio.timeout(TIMEOUT_S):
            self.lines.append((await self.process.stdout.read()).decode())
            return await self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@asynccontextmanager
async def watched(
    command: Sequence[str], environ: Mapping[str, str] | None = None
) -> AsyncIterator[Watched]:
    """Run a command and leave none of its children behind, whatever the test does."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=PIPE,
        stderr=STDOUT,
        env={**os.environ, **(environ or {})},
        limit=2**20,
        start_new_session=True,
    )
    supervisor = Watched(process)
    try:
        yield supervisor
    finally:
        if process.returncode is None:
            process.kill()
        await supervisor.wait_for_end()
        await wait_until_gone(supervisor.pids.values())


async def wait_until_gone(pids: Iterable[int]) -> None:
    """Wait until none of these processes runs."""
    async with asyncio.timeout(TIMEOUT_S):
        for pid in pids:
            while is_running(pid):  # noqa: ASYNC110  there is no event for somebody else's child
                await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or ") Z " not in state.read_text()
