"""Keeps a few services running until it is told to stop.

Owns the order of things: services start first to last and stop last to first; one that dies is
started again, later and later; one that keeps dying ends them all. Knows neither what the
services are nor how a process is started; those are `Service`s, given from outside.

What a signal does, by what came before it:

    running   --SIGINT, SIGTERM, SIGHUP-->  stopping   each service is asked to end, in order
    stopping  --SIGINT, SIGTERM, SIGHUP-->  killing    all that is left is killed at once
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from chatserve.errors import ConfigError, ServiceError

logger = logging.getLogger(__name__)

EXIT_BAD_SETTING = 2
EXIT_INTERRUPTED = 130

_PROBE_EVERY_S = 0.1
_REPORT_EVERY_S = 15.0


class Service(Protocol):
    """Something that runs, may die and can be started again."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Start it; raise a ChatServeError if it cannot work."""

    async def wait(self) -> int:
        """Wait until it has ended and return its exit code, negative for a signal."""

    async def stop(self) -> None:
        """End it in an orderly way, or by force after its own deadline. Idempotent."""

    def kill(self) -> None:
        """End it at once. Idempotent."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When to start a dead service again, and when to give up.

    The n-th early death in a row is followed by a wait of `first_delay_s * 2 ** (n - 1)`, and
    death number `max_early_deaths` by none. A run of `steady_after_s` forgives what came before.
    For `settle_s` after a restart readiness is not asked for: what the dead service said of itself
    may still be believed.
    """

    first_delay_s: float = 0.5
    max_delay_s: float = 30.0
    steady_after_s: float = 30.0
    max_early_deaths: int = 5
    settle_s: float = 0.0

    def delay_s(self, num_deaths: int) -> float:
        return min(self.first_delay_s * 2.0 ** (num_deaths - 1), self.max_delay_s)


DEFAULT_POLICY = RestartPolicy()


class Supervisor:
    """Runs services in order.

    Owns: whether each service should be running, and the signals of this process.
    Used from: one event loop, which must run in the main thread.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        is_ready: Callable[[], Awaitable[bool]],
        on_ready: Callable[[], None],
        policy: RestartPolicy = DEFAULT_POLICY,
    ) -> None:
        self._services = tuple(services)
        self._is_ready = is_ready
        self._on_ready = on_ready
        self._policy = policy
        self._repaired = asyncio.Event()
        self._stop_requested = asyncio.Event()
        self._is_killed = False

    async def run(self) -> int:
        """Run until a signal or a hopeless service ends it all, and return the exit code.

        Raises:
            ConfigError: A service ended with the exit code for a bad setting.
            ServiceError: A service died again and again.
        """
        loop = asyncio.get_running_loop()
        handled = _stop_signals()
        for number in handled:
            loop.add_signal_handler(number, self._on_signal)
        work = asyncio.create_task(self._work())
        stop = asyncio.create_task(self._stop_requested.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel(work, stop)
            await self._stop_services()
            for number in handled:
                loop.remove_signal_handler(number)
            logger.info("stopped")
        if not work.cancelled():
            await work
        return EXIT_INTERRUPTED if self._is_killed else 0

    async def _work(self) -> None:
        """Start everything, then do nothing but repair; ends only by an error."""
        keepers: list[asyncio.Task[None]] = []
        try:
            for service in self._services:
                await service.start()
                keepers.append(asyncio.create_task(self._keep_running(service)))
            keepers.append(asyncio.create_task(self._announce()))
            await asyncio.gather(*keepers)
        finally:
            await _cancel(*keepers)

    async def _keep_running(self, service: Service) -> None:
        clock = asyncio.get_running_loop().time
        num_deaths = 0
        while True:
            started = clock()
            code = await service.wait()
            is_early = clock() - started < self._policy.steady_after_s
            num_deaths = num_deaths + 1 if is_early else 1
            self._give_up_if_hopeless(service, code, num_deaths)
            delay_s = self._policy.delay_s(num_deaths)
            logger.error(
                "%s ended (%s); starting it again in %g s", service.name, _reason(code), delay_s
            )
            await asyncio.sleep(delay_s)
            await service.start()
            self._repaired.set()

    def _give_up_if_hopeless(self, service: Service, code: int, num_deaths: int) -> None:
        if code == EXIT_BAD_SETTING:
            raise ConfigError(f"the {service.name} refused its settings, as its message above says")
        if num_deaths >= self._policy.max_early_deaths:
            raise ServiceError(
                f"the {service.name} died {num_deaths} times in a row, "
                f"the last time with {_reason(code)}; giving up"
            )

    async def _announce(self) -> None:
        """Say when the whole is ready for the first time, and after each repair."""
        await self._until_ready()
        self._on_ready()
        while True:
            await self._repaired.wait()
            self._repaired.clear()
            await asyncio.sleep(self._policy.settle_s)
            await self._until_ready()
            logger.info("ready again")

    async def _until_ready(self) -> None:
        clock = asyncio.get_running_loop().time
        next_report = clock() + _REPORT_EVERY_S
        while not await self._is_ready():
            if clock() >= next_report:
                logger.info("not ready yet, still waiting")
                next_report = clock() + _REPORT_EVERY_S
            await asyncio.sleep(_PROBE_EVERY_S)

    async def _stop_services(self) -> None:
        for service in reversed(self._services):
            await service.stop()

    def _on_signal(self) -> None:
        if not self._stop_requested.is_set():
            logger.info("stopping; once more kills at once")
            self._stop_requested.set()
            return
        self._is_killed = True
        for service in self._services:
            service.kill()


def _stop_signals() -> list[signal.Signals]:
    """Return the signals that mean stop; under `nohup`, the end of the terminal does not."""
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signals = [signal.SIGINT, signal.SIGTERM]
    return signals if outlives_terminal else [*signals, signal.SIGHUP]


async def _cancel(*tasks: "asyncio.Task[object]") -> None:
    """Cancel tasks and wait until they have ended; their errors stay with whoever awaits them."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _reason(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return f"signal {signal.Signals(-code).name}"
