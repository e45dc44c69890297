"""Which workers a new one may take for dead."""

import multiprocessing
import os
import socket

import pytest

from chatserve.engine.api import EngineStats
from chatserve.engine.worker_id import forget_dead_neighbours, new_worker_id
from chatserve.store.connection import Store
from chatserve.store.workers import WorkerBeat


def ended_pid() -> int:
    process = multiprocessing.get_context("spawn").Process()
    process.start()
    process.join()
    assert process.pid is not None
    return process.pid


@pytest.mark.parametrize("host", ["here", "elsewhere"])
async def test_only_this_hosts_ended_processes_are_forgotten(store: Store, host: str) -> None:
    name = socket.gethostname() if host == "here" else "another-host"
    living, dead = f"{name}-{os.getpid()}-aaaa", f"{name}-{ended_pid()}-bbbb"
    for worker_id in (living, dead):
        beat = WorkerBeat(worker_id, "m", "f", "0", EngineStats())
        await store.workers.heartbeat(beat, 60_000)

    await forget_dead_neighbours(store.workers)

    left = {beat.worker_id for beat in await store.workers.live()}
    assert left == ({living} if host == "here" else {living, dead})


def test_every_worker_gets_an_id_of_its_own() -> None:
    assert new_worker_id() != new_worker_id()
