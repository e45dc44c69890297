"""Run one scenario against a server and print one line of JSON.

    python -m benchmarks.chat_load --url http://127.0.0.1:8000 --scenario shared-system

Scenarios: shared-system (tenants with long system prompts, conversations of several turns),
warm-ttft (new sessions one by one on prompts asked once before), burst (sessions all at once on one
new prompt) and single (one answer at a time). All are greedy, and every answer gets all its tokens.
A seed that a running server has seen before measures a warm cache; by default it is new.
"""

import argparse
import asyncio
import json
import secrets
from dataclasses import asdict

from benchmarks.chat_load.run import Target, run_load
from benchmarks.chat_load.scenario import Load, Scenario


def main() -> None:
    args = _parser().parse_args()
    load = Load(
        scenario=Scenario(args.scenario),
        seed=args.seed,
        num_sessions=args.sessions,
        concurrency=args.concurrency,
        num_turns=args.turns,
        max_tokens=args.out,
        num_tenants=args.tenants,
        system_words=args.system_words,
        question_words=args.question_words,
    )
    target = Target(args.url.rstrip("/"), args.model, args.api == "ws", args.key)
    figures = asyncio.run(run_load(target, load))
    heading = {"scenario": args.scenario, "api": args.api, "seed": args.seed}
    print(json.dumps({**heading, **asdict(figures)}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chat_load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--url", default="http://127.0.0.1:8000", help="address of the server")
    add("--scenario", choices=[*Scenario], required=True)
    add("--api", choices=["sse", "ws"], default="sse", help="protocol to ask over")
    add("--model", default="", help="name of the model; the server's first if not given")
    add("--key", default="", help="bearer token")
    add("--sessions", type=int, default=16, help="sessions in all")
    add("--concurrency", type=int, default=8, help="sessions at once, shared-system only")
    add("--turns", type=int, default=3, help="turns of each session, shared-system only")
    add("--out", type=int, default=48, help="tokens of each answer")
    add("--tenants", type=int, default=4, help="tenants, each with its own system prompt")
    add("--system-words", type=int, default=800, help="length of system prompts")
    add("--question-words", type=int, default=24, help="length of questions")
    add("--seed", default=secrets.token_hex(4), help="varies the prompts")
    return parser


if __name__ == "__main__":
    main()
