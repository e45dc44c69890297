"""What an answer costs the store: commands, processor time and bytes, for `docs/scale.md`.

    python -m benchmarks.store_cost [--answers 40]

One worker that computes nothing serves short and long answers, one at a time and eight at once, and
the server counts. Scripts run by EVALSHA are one command here, with all that they do inside; times
are the server's own. What a token costs is the difference between long and short answers. What
worker and gateway do without any answer is counted first, and taken off.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.record import write_record
from benchmarks.routing import Load, running_worker
from chatserve.gateway.models import ServedModels
from chatserve.identity import Owner
from chatserve.store import keys
from chatserve.store.connection import Store, open_store
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.log_readers import LogReaders
from chatserve.store.sessions import Message

SHORT_TOKENS, LONG_TOKENS = 8, 264
STREAMS = (1, 8)
IDLE_S = 5.0
STEP_S = 0.002
NUM_MESSAGES, MESSAGE_CHARS = 10, 500

_CLIENT_COMMANDS = ("evalsha", "xread", "xrange", "hgetall", "mget", "set", "sadd", "smembers")
"""What processes send in normal operation; what scripts call inside is part of their EVALSHA."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the server did: commands of clients, and microseconds in them."""

    commands: float
    cpu_us: float

    def minus(self, other: "Work", times: float = 1.0) -> "Work":
        return Work(self.commands - times * other.commands, self.cpu_us - times * other.cpu_us)

    def per(self, count: float) -> "Work":
        return Work(self.commands / count, self.cpu_us / count)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of answers with so many streams at once."""

    streams: int
    answer: Work
    token: Work


async def work_of(store: Store) -> Work:
    """Return what the server did since it started."""
    commands = cpu_us = 0.0
    for line in (await store.commands.call("INFO", "commandstats")).splitlines():
        name, _, figures = line.removeprefix("cmdstat_").partition(":")
        if name in _CLIENT_COMMANDS:
            known = dict(figure.split("=") for figure in figures.split(","))
            commands += float(known["calls"])
            cpu_us += float(known["usec"])
    return Work(commands, cpu_us)


async def idle_work(store: Store) -> Work:
    """Return what one worker and one gateway have the server do in a second."""
    before = await work_of(store)
    await asyncio.sleep(IDLE_S)
    return (await work_of(store)).minus(before).per(IDLE_S)


async def answers_work(
    store: Store, load: Load, num_tokens: int, num_answers: int, streams: int, idle: Work
) -> Work:
    """Return the work for one answer of so many tokens."""
    turns = asyncio.Semaphore(streams)

    async def ask(number: int) -> None:
        async with turns:
            name = f"resp_{streams}-{num_tokens}-{number}"
            await load.ask(name, lambda request: nullcontext(None), num_tokens)

    before, began_s = await work_of(store), time.perf_counter()
    await asyncio.gather(*(ask(number) for number in range(num_answers)))
    work = (await work_of(store)).minus(before)
    return work.minus(idle, time.perf_counter() - began_s).per(num_answers)


async def bytes_of(store: Store, *kinds: str) -> int:
    """Return what keys take, by their kind and id."""
    used = [await store.commands.call("MEMORY", "USAGE", keys.FIRST.key(kind)) for kind in kinds]
    return sum(number or 0 for number in used)


async def measure(num_answers: int) -> tuple[Work, list[Cost], dict[str, int]]:
    """Return the work of an idle second, the costs by streams, and bytes by what they are for."""
    with tempfile.TemporaryDirectory(prefix="chatserve-bench-") as folder:
        server = EmbeddedServer(Path(folder) / "store")
        await server.start()
        store = await open_store(server.url)
        logs, models = LogReaders(store), ServedModels(store.workers)
        logs.start()
        try:
            async with running_worker(store, "w1", step_s=STEP_S, token_s=0.0):
                await models.start()
                idle = await idle_work(store)
                load = Load(store, logs)
                costs = [await _cost(store, load, num_answers, each, idle) for each in STREAMS]
                sizes = await _sizes(store)
        finally:
            await models.aclose()
            await logs.aclose()
            await store.aclose()
            await server.stop()
    return idle, costs, sizes


async def _cost(store: Store, load: Load, num_answers: int, streams: int, idle: Work) -> Cost:
    short = await answers_work(store, load, SHORT_TOKENS, num_answers, streams, idle)
    long = await answers_work(store, load, LONG_TOKENS, num_answers, streams, idle)
    token = long.minus(short).per(LONG_TOKENS - SHORT_TOKENS)
    return Cost(streams, short.minus(token, SHORT_TOKENS), token)


async def _sizes(store: Store) -> dict[str, int]:
    name, session_id = f"resp_1-{LONG_TOKENS}-0", "conv_0"
    messages = [
        Message(f"msg_{number}", "user", "x" * MESSAGE_CHARS, created_at=1)
        for number in range(NUM_MESSAGES)
    ]
    await store.sessions.create(Owner("acme", "ann"), session_id, messages=messages)
    kinds = (keys.SESSION, keys.MESSAGES, keys.TREE)
    return {
        f"session of {NUM_MESSAGES} messages, {MESSAGE_CHARS} characters each": await bytes_of(
            store, *(kind + session_id for kind in kinds)
        ),
        f"log of {LONG_TOKENS} tokens": await bytes_of(store, keys.LOG + name),
        f"response of {LONG_TOKENS} tokens": await bytes_of(store, keys.RESPONSE + name),
    }


def print_costs(idle: Work, costs: Sequence[Cost], sizes: dict[str, int]) -> None:
    print(f"idle: {idle.commands:.1f} commands and {idle.cpu_us:.0f} us a second")
    for cost in costs:
        print(
            f"{cost.streams} at once: an answer {cost.answer.commands:.1f} commands and "
            f"{cost.answer.cpu_us:.0f} us, each token {cost.token.commands:.2f} and "
            f"{cost.token.cpu_us:.1f} us"
        )
    for name, size in sizes.items():
        print(f"{name}: {size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=40)
    args = parser.parse_args()
    idle, costs, sizes = asyncio.run(measure(args.answers))
    print_costs(idle, costs, sizes)
    record = {"idle": asdict(idle), "costs": [asdict(cost) for cost in costs], "bytes": sizes}
    print(f"raw figures: {write_record('store-cost', record)}")


if __name__ == "__main__":
    main()
