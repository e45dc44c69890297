"""A worker without an engine: appends deltas at the pace that each request asks for.

Owns how a request says what it wants, since no field is meant for this: `max_output_tokens` is the
number of its deltas, `seed` the microseconds between two of them. All that are due at a tick go to
the store in one round trip, as a real worker's do, and a tick that comes late appends the more.

    python -m benchmarks.gateway.source REDIS_URL
"""

import argparse
import asyncio
import random
import time
from dataclasses import dataclass

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from chatserve import __version__
from chatserve.engine.api import (
    EngineStats,
    EventKind,
    FinishReason,
    LogEvent,
    ModelCard,
    Outcome,
    Usage,
)
from chatserve.store.claim import Claim
from chatserve.store.connection import Store, open_store
from chatserve.store.response_log import Append, FinalAnswer
from chatserve.store.workers import WorkerBeat

MODEL = "paced"
WORKER = "source"

_TICK_S = 0.005
_CLAIM_EVERY_S = 0.05
_BEAT_EVERY_S = 1.0
_MAX_CLAIMS = 256
_LEASE_MS = 3_600_000


@dataclass(slots=True)
class PacedAnswer:
    """An answer under way. Mutable: `next_sequence`, `next_at` and `num_left` follow its deltas."""

    claim: Claim
    interval_s: float
    num_left: int
    next_at: float
    next_sequence: int

    @classmethod
    def of(cls, claim: Claim, now: float) -> "PacedAnswer":
        """Begin anywhere within the first interval, so that streams do not march in step."""
        sampling = claim.request.sampling
        interval_s = sampling.seed / 1e6
        next_at = now + random.random() * interval_s
        return cls(claim, interval_s, sampling.max_tokens, next_at, claim.next_sequence)

    def due(self, now: float) -> Append | None:
        """Return what is to be appended by now, as one delta; at the end the last event."""
        if now < self.next_at:
            return None
        self.next_at += self.interval_s
        if self.num_left == 0:
            return self._append(*_endings())
        self.num_left -= 1
        return self._append(LogEvent(EventKind.DELTA, f"{time.monotonic_ns()} ", (7,)))

    def _append(self, *events: LogEvent) -> Append:
        outcome = events[-1].outcome
        final = FinalAnswer("", (), outcome) if events[-1].kind.is_terminal and outcome else None
        request_id, epoch = self.claim.request.request_id, self.claim.epoch
        append = Append(request_id, epoch, self.next_sequence, events, final)
        self.next_sequence += len(events)
        return append


class Source:
    """Everything that runs on this worker.

    Owns: the answers under way. Used from: the event loop.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._answers: list[PacedAnswer] = []

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat())
            tasks.create_task(self._claim())
            tasks.create_task(self._append())

    async def _beat(self) -> None:
        fingerprint = await self._store.workers.publish_card(_card())
        stats = EngineStats(num_pages=1, pages_free=1)
        while True:
            beat = WorkerBeat(WORKER, MODEL, fingerprint, __version__, stats)
            await self._store.workers.heartbeat(beat, 60_000)
            await asyncio.sleep(_BEAT_EVERY_S)

    async def _claim(self) -> None:
        while True:
            claims = await self._store.queue.claim(WORKER, MODEL, _MAX_CLAIMS, _LEASE_MS)
            now = time.monotonic()
            for claim in claims:
                self._answers.append(PacedAnswer.of(claim, now))
            if len(claims) < _MAX_CLAIMS:
                await asyncio.sleep(_CLAIM_EVERY_S)

    async def _append(self) -> None:
        while True:
            started = time.monotonic()
            due = [(a, append) for a in self._answers if (append := a.due(started))]
            if due:
                accepted = await self._store.log.append([append for _, append in due])
                ended = {
                    id(answer)
                    for (answer, append), is_accepted in zip(due, accepted, strict=True)
                    if append.final is not None or not is_accepted
                }
                if ended:
                    self._answers = [a for a in self._answers if id(a) not in ended]
            await asyncio.sleep(max(0.0, started + _TICK_S - time.monotonic()))


def _endings() -> tuple[LogEvent, ...]:
    outcome = Outcome(FinishReason.LENGTH, Usage())
    return (LogEvent(outcome.terminal_kind, outcome=outcome),)


def _card() -> ModelCard:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    return ModelCard(
        name=MODEL,
        max_model_len=2**20,
        max_prompt_tokens=2**20 - 1,
        vocab_size=258,
        tokenizer_json=tokenizer.to_str(),
        chat_template=None,
        bos_token=None,
        eos_token="<|im_end|>",
        eos_token_ids=(257,),
        adds_bos=False,
    )


async def _main(url: str) -> None:
    store = await open_store(url)
    try:
        await Source(store).run()
    finally:
        await store.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("redis_url")
    asyncio.run(_main(parser.parse_args().redis_url))
