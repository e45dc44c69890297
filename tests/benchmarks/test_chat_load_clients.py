"""The load against servers on loopback that answer from a script."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from benchmarks.chat_load.run import Target, run_load
from benchmarks.chat_load.scenario import Load, Scenario

Script = Callable[[dict[str, Any]], tuple[int, list[dict[str, Any]]]]

MODELS = {"data": [{"id": "scripted"}]}
LOAD = Load(
    Scenario.SHARED_SYSTEM, "seed", num_sessions=2, num_turns=2, max_tokens=2, system_words=3
)


def a_whole_answer(body: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    usage = {
        "prompt_tokens": 7,
        "completion_tokens": body["max_tokens"],
        "prompt_tokens_details": {"cached_tokens": 5},
    }
    return 200, [
        {"choices": [{"delta": {"role": "assistant"}}]},
        {"choices": [{"delta": {"content": "two "}}]},
        {"choices": [{"delta": {"content": "words"}, "finish_reason": "length"}]},
        {"choices": [], "usage": usage},
    ]


@asynccontextmanager
async def scripted_server(
    script: Script, bodies: list[dict[str, Any]] | None = None
) -> AsyncIterator[str]:
    """Yield the address of a server that answers every chat completion from `script`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status, lines = 200, json.dumps(MODELS)
        if head.startswith("POST"):
            length = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            if bodies is not None:
                bodies.append(body)
            status, events = script(body)
            lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        writer.write(f"HTTP/1.1 {status} X\r\nConnection: close\r\n\r\n{lines}".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_every_turn_resends_what_was_said() -> None:
    bodies: list[dict[str, Any]] = []

    async with scripted_server(a_whole_answer, bodies) as url:
        await run_load(Target(url), LOAD)

    second_turns = [body["messages"] for body in bodies if len(body["messages"]) == 4]
    assert len(bodies) == 4
    assert len(second_turns) == 2
    assert {messages[2]["content"] for messages in second_turns} == {"two words"}
    assert {body["model"] for body in bodies} == {"scripted"}


async def test_usage_and_text_of_every_answer_are_counted() -> None:
    async with scripted_server(a_whole_answer) as url:
        figures = await run_load(Target(url), LOAD)

    assert (figures.num_answers, figures.num_errors) == (4, 0)
    assert (figures.prompt_tokens, figures.cached_tokens, figures.output_tokens) == (28, 20, 8)
    assert figures.ttft_ms is not None
    assert figures.itl_ms is not None


async def test_warm_ttft_primes_every_tenant_and_does_not_count_it() -> None:
    bodies: list[dict[str, Any]] = []
    load = Load(Scenario.WARM_TTFT, "seed", num_sessions=3, max_tokens=4, num_tenants=2)

    async with scripted_server(a_whole_answer, bodies) as url:
        figures = await run_load(Target(url), load)

    assert [body["max_tokens"] for body in bodies] == [2, 2, 4, 4, 4]
    assert figures.num_answers == 3


def a_refusal(body: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    return 503, [{"error": "full"}]


def an_error_in_the_stream(body: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    return 200, [{"error": {"message": "out of pages"}}]


def a_short_answer(body: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    return 200, a_whole_answer({"max_tokens": 1})[1]


def a_broken_stream(body: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    return 200, a_whole_answer(body)[1][:2]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (a_refusal, "status 503"),
        (an_error_in_the_stream, "out of pages"),
        (a_short_answer, "1 tokens instead of 2"),
        (a_broken_stream, "the stream ended before the answer did"),
    ],
)
async def test_whatever_is_not_a_whole_answer_is_an_error(script: Script, reason: str) -> None:
    async with scripted_server(script) as url:
        figures = await run_load(Target(url), LOAD)

    assert figures.num_errors == figures.num_answers == 4
    assert reason in figures.first_error


async def test_the_websocket_is_asked_for_the_same() -> None:
    asked: list[dict[str, Any]] = []

    async def answer(socket: ServerConnection) -> None:
        asked.append(json.loads(await socket.recv()))
        details = {"cached_tokens": 3}
        usage = {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": details}
        for event in (
            {"type": "response.created"},
            {"type": "response.output_text.delta", "delta": "some"},
            {"type": "response.output_text.delta", "delta": "thing"},
            {"type": "response.incomplete", "response": {"usage": usage}},
        ):
            await socket.send(json.dumps(event))

    async with serve(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        target = Target(f"http://127.0.0.1:{port}", "scripted", uses_websocket=True)
        figures = await run_load(target, LOAD)

    assert (figures.num_errors, figures.prompt_tokens, figures.cached_tokens) == (0, 36, 12)
    assert {event["max_output_tokens"] for event in asked} == {2}
    assert all(event["ignore_eos"] for event in asked)
