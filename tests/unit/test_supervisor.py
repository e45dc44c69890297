"""The supervisor's order and patience, on services that are no processes."""

import asyncio
import math
import os
import signal
from collections.abc import Sequence

import pytest

from chatserve.errors import ConfigError, ServiceError, StoreError
from chatserve.supervisor.supervisor import (
    EXIT_BAD_SETTING,
    EXIT_INTERRUPTED,
    RestartPolicy,
    Supervisor,
)

AT_ONCE = RestartPolicy(first_delay_s=0, steady_after_s=math.inf, max_early_deaths=3)


class FakeService:
    """A service that dies with the given exit codes, one per start, and then runs for ever."""

    def __init__(self, name: str, journal: list[str], codes: Sequence[int] = ()) -> None:
        self.name = name
        self.hangs = False
        self.is_stopping = asyncio.Event()
        self._journal = journal
        self._codes = list(codes)
        self._ended = asyncio.Event()

    async def start(self) -> None:
        self._journal.append(f"start {self.name}")

    async def wait(self) -> int:
        if self._codes:
            return self._codes.pop(0)
        await self._ended.wait()
        return 0

    async def stop(self) -> None:
        self._journal.append(f"stop {self.name}")
        self.is_stopping.set()
        if self.hangs:
            await self._ended.wait()

    def kill(self) -> None:
        self._journal.append(f"kill {self.name}")
        self._ended.set()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def ready() -> bool:
    return True


async def never_ready() -> bool:
    return False


async def test_services_start_first_to_last_and_stop_last_to_first() -> None:
    journal: list[str] = []
    services = [FakeService("store", journal), FakeService("engine", journal)]
    supervisor = Supervisor(services, is_ready=ready, on_ready=interrupt)

    code = await supervisor.run()

    assert code == 0
    assert journal == ["start store", "start engine", "stop engine", "stop store"]


async def test_readiness_is_announced_once_and_only_when_it_is_there() -> None:
    answers = iter([False, False, True])
    announced: list[str] = []

    async def is_ready() -> bool:
        return next(answers)

    def on_ready() -> None:
        announced.append("ready")
        interrupt()

    await Supervisor([FakeService("store", [])], is_ready=is_ready, on_ready=on_ready).run()

    assert announced == ["ready"]
    assert list(answers) == []


async def test_second_signal_kills_what_does_not_stop() -> None:
    journal: list[str] = []
    service = FakeService("engine", journal)
    service.hangs = True
    supervisor = Supervisor([service], is_ready=ready, on_ready=interrupt)
    run = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(5):
        await service.is_stopping.wait()

    interrupt()
    code = await run

    assert code == EXIT_INTERRUPTED
    assert journal[-1] == "kill engine"


async def test_service_under_nohup_outlives_its_terminal() -> None:
    def close_terminal_then_interrupt() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        interrupt()

    service = FakeService("engine", [])
    supervisor = Supervisor([service], is_ready=ready, on_ready=close_terminal_then_interrupt)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        code = await supervisor.run()
    finally:
        signal.signal(signal.SIGHUP, before)

    assert code == 0  # one signal counted; two would have killed


async def test_dead_service_is_started_again() -> None:
    journal: list[str] = []
    service = FakeService("engine", journal, codes=[1, -signal.SIGKILL])

    async def has_started_three_times() -> bool:
        return journal.count("start engine") == 3

    supervisor = Supervisor(
        [service], is_ready=has_started_three_times, on_ready=interrupt, policy=AT_ONCE
    )

    code = await supervisor.run()

    assert code == 0
    assert journal == ["start engine"] * 3 + ["stop engine"]


async def test_service_that_dies_again_and_again_ends_them_all() -> None:
    journal: list[str] = []
    services = [FakeService("store", journal), FakeService("engine", journal, codes=[1, 1, 1])]
    supervisor = Supervisor(services, is_ready=never_ready, on_ready=interrupt, policy=AT_ONCE)

    with pytest.raises(ServiceError, match="the engine died 3 times in a row") as failure:
        await supervisor.run()

    assert "exit code 1" in str(failure.value)
    assert journal[-2:] == ["stop engine", "stop store"]


async def test_long_run_forgives_earlier_deaths() -> None:
    every_run_is_long = RestartPolicy(first_delay_s=0, steady_after_s=0, max_early_deaths=2)
    journal: list[str] = []
    service = FakeService("engine", journal, codes=[1] * 5)

    async def has_started_six_times() -> bool:
        return journal.count("start engine") == 6

    supervisor = Supervisor(
        [service], is_ready=has_started_six_times, on_ready=interrupt, policy=every_run_is_long
    )

    assert await supervisor.run() == 0


async def test_service_that_refuses_its_settings_is_not_tried_twice() -> None:
    journal: list[str] = []
    service = FakeService("engine", journal, codes=[EXIT_BAD_SETTING])
    supervisor = Supervisor([service], is_ready=never_ready, on_ready=interrupt, policy=AT_ONCE)

    with pytest.raises(ConfigError, match="the engine refused its settings"):
        await supervisor.run()

    assert journal == ["start engine", "stop engine"]


async def test_service_that_cannot_start_stops_those_before_it() -> None:
    journal: list[str] = []

    class Broken(FakeService):
        async def start(self) -> None:
            raise StoreError("no store is bundled here")

    services = [FakeService("store", journal), Broken("engine", journal)]
    supervisor = Supervisor(services, is_ready=never_ready, on_ready=interrupt)

    with pytest.raises(StoreError, match="no store is bundled here"):
        await supervisor.run()

    assert journal == ["start store", "stop engine", "stop store"]


def test_waits_grow_up_to_a_limit() -> None:
    policy = RestartPolicy(first_delay_s=0.5, max_delay_s=3)

    delays_s = [policy.delay_s(num_deaths) for num_deaths in (1, 2, 3, 4, 50)]

    assert delays_s == [0.5, 1, 2, 3, 3]
