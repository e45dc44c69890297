"""Runs one load: opens the sessions, so many at once, and lets each ask its turns.

Owns the order of questions. Knows neither protocol nor figures' definitions.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from benchmarks.chat_load.clients import Answer, ChatClient, SSEClient, WebSocketClient
from benchmarks.chat_load.figures import LoadFigures
from benchmarks.chat_load.scenario import Load, Message, plan_load

_TIMEOUT_S = 900.0
_PRIMING_TOKENS = 2


@dataclass(frozen=True, slots=True)
class Target:
    """A server to ask. Without a model's name it is the first that the server lists."""

    url: str
    model: str = ""
    uses_websocket: bool = False
    key: str = ""


async def run_load(target: Target, load: Load) -> LoadFigures:
    """Run a load against a server and return what it measured.

    Raises:
        httpx.HTTPError: The server does not say which models it has.
    """
    load = plan_load(load)
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(
        base_url=target.url, headers=headers, limits=limits, timeout=_TIMEOUT_S
    ) as http:
        model = target.model or await _first_model(http)
        client: ChatClient = SSEClient(http, model)
        if target.uses_websocket:
            client = WebSocketClient(target.url, model, headers)
        if load.is_primed:
            await _prime(client, load)
        began = time.perf_counter()
        answers = await _ask_all(client, load)
        return LoadFigures.of(answers, time.perf_counter() - began)


async def _first_model(http: httpx.AsyncClient) -> str:
    reply = await http.get("/v1/models")
    reply.raise_for_status()
    return str(reply.json()["data"][0]["id"])


async def _prime(client: ChatClient, load: Load) -> None:
    greeting = {"role": "user", "content": "Hello."}
    for tenant in range(load.num_tenants):
        await client.ask([load.system_message(tenant), greeting], _PRIMING_TOKENS)


async def _ask_all(client: ChatClient, load: Load) -> Sequence[Answer]:
    seats = asyncio.Semaphore(load.concurrency)
    sessions = (_session(client, load, index, seats) for index in range(load.num_sessions))
    return [answer for answers in await asyncio.gather(*sessions) for answer in answers]


async def _session(
    client: ChatClient, load: Load, index: int, seats: asyncio.Semaphore
) -> list[Answer]:
    messages: list[Message] = [load.system_message(index % load.num_tenants)]
    answers: list[Answer] = []
    async with seats:
        for turn in range(load.num_turns):
            messages.append(load.question(index, turn))
            answers.append(await client.ask(messages, load.max_tokens))
            messages.append({"role": "assistant", "content": answers[-1].text})
    return answers
