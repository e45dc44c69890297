"""Texts on their way to tokens: what is refused before, and who waits for whom."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from gateway.gateway_helpers import Service, eventually
from gateway.lexing_spy import lexed_lengths

from chatserve.gateway import tokenising as tokenising_module
from chatserve.gateway.tokenising import MAX_INLINE_CHARS, Tokenising

LARGE = MAX_INLINE_CHARS + 1
NUM_THREADS = tokenising_module._NUM_THREADS


class Gate:
    """Work that stands still until it is let through, and how much of it there is at once."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._lock = threading.Lock()
        self.num_begun = 0
        self.num_ended = 0
        self.most = 0

    def work(self) -> None:
        with self._lock:
            self.num_begun += 1
            self.most = max(self.most, self.num_begun - self.num_ended)
        assert self._open.wait(20)
        with self._lock:
            self.num_ended += 1

    def let_through(self) -> None:
        self._open.set()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest_asyncio.fixture
async def tokenising(gate: Gate) -> AsyncIterator[Tokenising]:
    tokenising = Tokenising()
    yield tokenising
    gate.let_through()
    await tokenising.aclose()


async def test_tenant_with_much_to_tokenise_keeps_no_other_waiting(
    tokenising: Tokenising, gate: Gate
) -> None:
    """Twenty-four texts of a megabyte kept the next tenant waiting for 25 seconds."""
    bobs = [asyncio.create_task(tokenising.run("bob", LARGE, gate.work)) for _ in range(24)]
    await eventually(lambda: gate.num_begun == NUM_THREADS - 1)

    async with asyncio.timeout(10):
        text = await tokenising.run("eve", LARGE, lambda: "eve's")

    assert text == "eve's"
    assert gate.num_begun == NUM_THREADS - 1
    gate.let_through()
    await asyncio.gather(*bobs)


async def test_client_that_leaves_frees_no_thread_that_still_works(
    tokenising: Tokenising, gate: Gate
) -> None:
    for _ in range(8):
        leaving = asyncio.create_task(tokenising.run("bob", LARGE, gate.work))
        await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)

    async with asyncio.timeout(10):
        assert await tokenising.run("eve", LARGE, lambda: 1) == 1
    assert gate.num_begun == NUM_THREADS - 1
    gate.let_through()
    await eventually(lambda: gate.num_ended == gate.num_begun)
    assert gate.most == NUM_THREADS - 1


async def test_short_text_waits_for_nobody(tokenising: Tokenising, gate: Gate) -> None:
    bobs = [asyncio.create_task(tokenising.run("bob", LARGE, gate.work)) for _ in range(8)]
    await eventually(lambda: gate.num_begun > 0)

    assert await tokenising.run("bob", MAX_INLINE_CHARS, lambda: 1) == 1

    gate.let_through()
    await asyncio.gather(*bobs)


TEXT = "1 " * 400_000


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/responses", {"input": TEXT}, "input"),
        ("/v1/responses", {"input": "x", "instructions": TEXT}, "input"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": TEXT}]}, "messages"),
        ("/v1/completions", {"prompt": TEXT}, "prompt"),
        ("/tokenize", {"prompt": TEXT}, "prompt"),
        ("/tokenize", {"messages": [{"role": "user", "content": TEXT}]}, "messages"),
    ],
)
async def test_text_that_no_prompt_holds_is_refused_before_a_token_is_made(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: str, body: Any, param: str
) -> None:
    lengths = lexed_lengths(monkeypatch)

    reply = await service.http.post(path, json={"model": "echo", **body})

    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (
        400,
        "context_length_exceeded",
        param,
    )
    assert lengths == []


async def test_ids_of_a_prompt_are_counted_before_they_are_looked_at(service: Service) -> None:
    reply = await service.http.post(
        "/v1/completions", json={"model": "echo", "prompt": [10**6] * 5000}
    )

    assert reply.json()["error"]["code"] == "context_length_exceeded"
