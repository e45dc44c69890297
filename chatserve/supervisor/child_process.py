"""One role of the service as a child process of the supervisor.

Owns how a child is started, so that nothing meant for the supervisor reaches it: it leads its own
session, which keeps the terminal's Ctrl-C away, and it is on the lifeline before it is anything
else. Its output goes where ours goes.
"""

import asyncio
import logging
import signal
from collections.abc import Mapping, Sequence

from chatserve.supervisor.lifeline import Lifeline, signal_group

logger = logging.getLogger(__name__)


class ChildProcess:
    """A command that can be started again after it has ended.

    Owns: the process and everything in its process group.
    Used from: the supervisor's event loop.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        lifeline: Lifeline,
        stop_deadline_s: float,
    ) -> None:
        self.name = name
        self._command = tuple(command)
        self._environ = environ
        self._lifeline = lifeline
        self._stop_deadline_s = stop_deadline_s
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the command. Cancelled in between, the lifeline is what ends the process."""
        self._process = await asyncio.create_subprocess_exec(
            *self._lifeline.enlisted(self._command),
            stdin=self._lifeline.fileno(),
            env=dict(self._environ),
            start_new_session=True,
        )
        logger.info("started the %s, process %d", self.name, self._process.pid)

    async def wait(self) -> int:
        """Wait until the command has ended, and end whatever it left behind."""
        assert self._process is not None, f"the {self.name} was never started"
        code = await self._process.wait()
        signal_group(self._process.pid, signal.SIGKILL)
        self._lifeline.forget(self._process.pid)
        return code

    async def stop(self) -> None:
        if self._running_pid() is None:
            return
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.wait(), self._stop_deadline_s)
        except TimeoutError:
            logger.warning("the %s did not stop in %g s", self.name, self._stop_deadline_s)
            self.kill()
            await self.wait()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        pid = self._running_pid()
        if pid is not None:
            signal_group(pid, number)

    def _running_pid(self) -> int | None:
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid
