"""What prefix sharing is worth: the same chat load with the prefix cache and without it.

Two services run side by side and are asked in turn, so that whatever slows the machine slows both.
In each round one tenant's system prompt is new to both; one session asks first, then the others ask
at once. Figures are medians over the rounds.

    python -m benchmarks.prefix_sharing [--sessions 8] [--rounds 3] [--system-words 500]
"""

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.service import running_service

MODEL = "smollm2-135m-instruct"
RESULTS = Path(__file__).parent / "results"
WORDS = [
    "account",
    "invoice",
    "refund",
    "shipping",
    "address",
    "warranty",
    "customer",
    "password",
    "delivery",
    "receipt",
    "order",
    "support",
    "ticket",
    "billing",
    "payment",
    "device",
    "router",
    "screen",
    "battery",
    "update",
    "settings",
    "profile",
]


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer as its client saw it."""

    ttft_s: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Round:
    """One round on one service: `sessions` turns at once, after one that came first."""

    ttft_p50_ms: float
    ttft_max_ms: float
    output_tok_s: float
    computed_prompt_tokens: int
    peak_pages_used: int


async def ask(client: httpx.AsyncClient, system: str, question: str, num_tokens: int) -> Turn:
    body = {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": question},
        ],
        "max_tokens": num_tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    began = time.perf_counter()
    ttft_s, usage = 0.0, None
    async with client.stream("POST", "/v1/chat/completions", json=body) as reply:
        reply.raise_for_status()
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            usage = chunk.get("usage") or usage
            if not ttft_s and any(each["delta"].get("content") for each in chunk["choices"]):
                ttft_s = time.perf_counter() - began
    assert usage is not None, "the stream had no usage"
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return Turn(ttft_s, usage["prompt_tokens"], cached, usage["completion_tokens"])


async def measure(address: str, system: str, args: argparse.Namespace) -> Round:
    rng = random.Random(system)
    questions = [
        f"Question {index}: {' '.join(rng.choices(WORDS, k=12))}?" for index in range(args.sessions)
    ]
    async with httpx.AsyncClient(base_url=address, timeout=600) as client:
        await ask(client, system, "Hello.", 2)
        pages = PageWatch(client)
        async with pages:
            began = time.perf_counter()
            turns = await asyncio.gather(*(ask(client, system, q, args.out) for q in questions))
            seconds = time.perf_counter() - began
    ttfts = [1e3 * turn.ttft_s for turn in turns]
    return Round(
        ttft_p50_ms=median(ttfts),
        ttft_max_ms=max(ttfts),
        output_tok_s=sum(turn.output_tokens for turn in turns) / seconds,
        computed_prompt_tokens=sum(turn.prompt_tokens - turn.cached_tokens for turn in turns),
        peak_pages_used=pages.peak,
    )


class PageWatch:
    """Notes the most pages that were in use at once, from `/metrics`.

    Owns: its polling task. Used from: the event loop, as a context manager.
    """

    def __init__(self, client: httpx.AsyncClient):
        self.peak = 0
        self._client = client

    async def __aenter__(self) -> "PageWatch":
        self._task = asyncio.create_task(self._poll())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _poll(self) -> None:
        while True:
            text = (await self._client.get("/metrics")).text
            used = [
                float(line.rpartition(" ")[2])
                for line in text.splitlines()
                if line.startswith('chatserve_kv_pages{state="used"')
            ]
            self.peak = max(self.peak, int(sum(used)))
            await asyncio.sleep(0.1)


def system_prompt(seed: str, num_words: int) -> str:
    rng = random.Random(seed)
    return f"You are the help desk of shop {seed}. " + " ".join(rng.choices(WORDS, k=num_words))


async def run_rounds(addresses: dict[str, str], args: argparse.Namespace) -> dict[str, list[Round]]:
    rounds: dict[str, list[Round]] = {name: [] for name in addresses}
    for number in range(args.rounds + 1):
        system = system_prompt(f"{args.seed}/{number}", args.system_words)
        for name, address in addresses.items():
            result = await measure(address, system, args)
            if number:  # the first round only warms both services up
                rounds[name].append(result)
    return rounds


def summarise(rounds: dict[str, list[Round]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            field: median(asdict(each)[field] for each in results)
            for field in Round.__dataclass_fields__
        }
        for name, results in rounds.items()
    }


def print_table(medians: dict[str, dict[str, float]]) -> None:
    rows = {
        "time to first token, median, ms": "ttft_p50_ms",
        "time to first token, slowest, ms": "ttft_max_ms",
        "output tokens per second, all sessions": "output_tok_s",
        "prompt tokens computed": "computed_prompt_tokens",
        "KV pages in use, peak": "peak_pages_used",
    }
    print("| | sharing | without | ratio |")
    print("|---|---:|---:|---:|")
    for title, field in rows.items():
        shared, alone = medians["sharing"][field], medians["without"][field]
        print(f"| {title} | {shared:,.0f} | {alone:,.0f} | {shared / alone:.2f} |")


def write_result(args: argparse.Namespace, rounds: dict[str, list[Round]]) -> Path:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    record: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        "arguments": vars(args),
        "rounds": {name: [asdict(each) for each in results] for name, results in rounds.items()},
    }
    path = RESULTS / f"{record['date']}-prefix-sharing.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=8, help="sessions that ask at once")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds, a new prompt each")
    parser.add_argument("--system-words", type=int, default=500, help="length of system prompts")
    parser.add_argument("--out", type=int, default=32, help="tokens of each answer")
    parser.add_argument("--port", type=int, default=18410, help="first of two ports to use")
    parser.add_argument("--seed", default="bench", help="varies the prompts")
    args = parser.parse_args()
    flags = ["--num-pages", "4096"]
    with (
        running_service(args.port, flags) as sharing,
        running_service(args.port + 1, [*flags, "--no-prefix-cache"]) as without,
    ):
        rounds = asyncio.run(run_rounds({"sharing": sharing, "without": without}, args))
    print_table(summarise(rounds))
    print(f"raw figures: {write_result(args, rounds)}")


if __name__ == "__main__":
    main()
