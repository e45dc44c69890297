"""Writing answers to the log, of which one may be lost and won again."""

import asyncio
from collections.abc import Sequence
from typing import cast

from chatserve.engine.api import (
    EngineStats,
    GenerationRequest,
    RequestId,
    RequestOutput,
    SamplingParams,
)
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.response_writer import ResponseWriter
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.store.claim import Claim
from chatserve.store.response_log import Append, ResponseLog

ID = RequestId("resp_1")


class IdleEngine:
    """Takes requests and makes nothing of them; `running` is what it would run, by its own ids."""

    def __init__(self) -> None:
        self.running: list[str] = []

    def stats(self) -> EngineStats:
        return EngineStats()

    def add(self, request: GenerationRequest, _: Sequence[int]) -> None:
        self.running.append(request.request_id)

    def abort(self, request_ids: Sequence[str]) -> None:
        self.running = [each for each in self.running if each not in request_ids]


class RefusingLog:
    """Refuses every append, once it is let go on."""

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()
        self.go_on = asyncio.Event()

    async def append(self, appends: Sequence[Append]) -> list[bool]:
        self.is_asked.set()
        await self.go_on.wait()
        return [False for _ in appends]


def claim(epoch: int) -> Claim:
    request = GenerationRequest(ID, "m", (1, 2, 3), SamplingParams(max_tokens=9, seed=0))
    return Claim(request, epoch, 2, (), "", queued_ms=5)


async def test_answer_won_again_while_its_old_events_are_refused_stays_open() -> None:
    """It used to be dropped with the lost one, and stood still until its lease ended."""
    log, engine = RefusingLog(), IdleEngine()
    writer = ResponseWriter(
        cast(ResponseLog, log),
        WorkerMetrics(engine.stats),
        engine=cast(EngineThread, engine),
        on_room=lambda: None,
    )
    writer.open(claim(1))
    [engine_id] = engine.running
    writer.take([RequestOutput(RequestId(engine_id), (7,), "x")])
    writing = asyncio.create_task(writer.flush())
    await log.is_asked.wait()

    writer.open(claim(2))
    log.go_on.set()
    await writing

    assert writer.open_request_ids == [ID]
    assert len(engine.running) == 1
