"""The whole service on the default model, seen through its API."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

MODEL = "smollm2-135m-instruct"
SYSTEM = "You are the help desk of a small town's library. Answer in one short sentence. " * 6


@pytest_asyncio.fixture
async def client(service_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=service_url, timeout=120) as client:
        yield client


def chat_body(question: str, system: str = SYSTEM, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    body = {"model": MODEL, "messages": messages, "temperature": 0, "ignore_eos": True}
    return body | {"max_tokens": 16} | fields


async def chat(client: httpx.AsyncClient, question: str, **fields: Any) -> dict[str, Any]:
    reply = await client.post("/v1/chat/completions", json=chat_body(question, **fields))
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def cached(answer: dict[str, Any]) -> int:
    return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])


async def metric(client: httpx.AsyncClient, name: str) -> float:
    """Return the sum over all workers of a sample whose name and first label are `name`."""
    lines = (await client.get("/metrics")).text.splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)]
    assert values, f"no metric {name}"
    return sum(values)


async def until_metric(client: httpx.AsyncClient, name: str, value: float) -> None:
    async with asyncio.timeout(30):
        while await metric(client, name) != value:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.05)


class Stream:
    """One streamed chat completion and when its deltas came."""

    def __init__(self, client: httpx.AsyncClient, body: dict[str, Any]):
        self._client = client
        self._body = body | {"stream": True, "stream_options": {"include_usage": True}}
        self.first_s = self.last_s = 0.0
        self.text = ""
        self.usage: dict[str, Any] = {}
        self.started = asyncio.Event()

    async def read(self, *, max_deltas: int | None = None) -> "Stream":
        """Read to the end, or hang up after `max_deltas`."""
        count = 0
        async with self._client.stream("POST", "/v1/chat/completions", json=self._body) as reply:
            assert reply.status_code == 200
            async for line in reply.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                chunk = json.loads(line.removeprefix("data: "))
                self.usage = chunk["usage"] or self.usage
                if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                    self._note(chunk["choices"][0]["delta"]["content"])
                    count += 1
                    if count == max_deltas:
                        return self
        return self

    def _note(self, delta: str) -> None:
        self.text += delta
        self.last_s = time.monotonic()
        self.first_s = self.first_s or self.last_s
        self.started.set()


async def test_a_second_session_finds_every_shared_token_once_the_first_has_finished(
    client: httpx.AsyncClient,
) -> None:
    first = await chat(client, "Until when are you open today?")

    again = await chat(client, "Until when are you open today?")
    other = await chat(client, "Can I renew a book?")

    prompt_tokens = first["usage"]["prompt_tokens"]
    assert cached(again) == prompt_tokens - 1
    # All of the system prompt and the template around it, to the token and not to the page.
    assert cached(other) > len(SYSTEM.split())
    assert cached(other) % 16 != 0


async def test_whole_pages_are_shared_while_the_first_still_runs(client: httpx.AsyncClient) -> None:
    system = "This system prompt belongs to one test alone, and is long enough for pages. " * 5
    running = Stream(client, chat_body("Tell me a story.", system, max_tokens=200))
    task = asyncio.create_task(running.read())
    await running.started.wait()

    second = Stream(client, chat_body("And now another one.", system, max_tokens=30))
    second_task = asyncio.create_task(second.read())
    await second.started.wait()
    shared = await metric(client, "chatserve_kv_pages_shared")
    await second_task
    still_running = not task.done()
    await task

    assert still_running
    num_cached = second.usage["prompt_tokens_details"]["cached_tokens"]
    assert num_cached >= 64
    assert shared >= num_cached // 16


async def test_eight_streams_at_once_all_advance_together(client: httpx.AsyncClient) -> None:
    streams = [Stream(client, chat_body(f"Question {i}?", max_tokens=64)) for i in range(8)]

    await asyncio.gather(*(stream.read() for stream in streams))

    last_start = max(stream.first_s for stream in streams)
    first_end = min(stream.last_s for stream in streams)
    assert last_start < first_end, "a stream waited for another to finish"
    assert all(stream.usage["completion_tokens"] == 64 for stream in streams)


async def test_clients_that_vanish_at_random_leave_every_page_free_or_cached(
    client: httpx.AsyncClient,
) -> None:
    rng = random.Random(1)
    streams = [Stream(client, chat_body(f"Tell me about {i}.", max_tokens=400)) for i in range(24)]

    await asyncio.gather(*(each.read(max_deltas=rng.randint(1, 12)) for each in streams))

    await until_metric(client, 'chatserve_requests{state="running"', 0)
    await until_metric(client, 'chatserve_requests{state="waiting"', 0)
    await until_metric(client, 'chatserve_kv_pages{state="used"', 0)
    free = await metric(client, 'chatserve_kv_pages{state="free"')
    cached_pages = await metric(client, 'chatserve_kv_pages{state="cached"')
    assert free + cached_pages == 1024


async def test_a_plain_request_whose_client_leaves_is_aborted(client: httpx.AsyncClient) -> None:
    task = asyncio.create_task(chat(client, "Count to a million.", max_tokens=2000))
    await until_metric(client, 'chatserve_requests{state="running"', 1)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await until_metric(client, 'chatserve_requests{state="running"', 0)
    assert (await chat(client, "Still there?"))["usage"]["completion_tokens"] == 16


async def test_seeds_hold_and_temperature_varies(client: httpx.AsyncClient) -> None:
    async def ask(seed: int) -> str:
        answer = await chat(client, "Invent a name.", temperature=1.0, seed=seed)
        return str(answer["choices"][0]["message"]["content"])

    await ask(7)  # the prompt is cached from here on, so that both computations have one shape
    same = [await ask(7) for _ in range(2)]
    different = await asyncio.gather(*(ask(seed) for seed in range(4)))

    assert len(set(same)) == 1
    assert len(set(different)) > 1


@pytest.mark.parametrize("surface", ["chat completions", "responses"])
async def test_the_official_client_streams_from_the_real_model(
    service_url: str, surface: str
) -> None:
    openai = AsyncOpenAI(base_url=f"{service_url}/v1", api_key="none")
    async with openai:
        if surface == "chat completions":
            text = await _stream_chat(openai)
        else:
            text = await _stream_response(openai)

    assert len(text) > 10


async def _stream_chat(openai: AsyncOpenAI) -> str:
    text = ""
    stream = await openai.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "What is a library?"}],
        max_tokens=24,
        temperature=0,
        stream=True,
    )
    async for chunk in stream:
        text += chunk.choices[0].delta.content or ""
    return text


async def _stream_response(openai: AsyncOpenAI) -> str:
    text = ""
    async with openai.responses.connect() as connection:
        await connection.response.create(
            model=MODEL, input="What is a library?", max_output_tokens=24, temperature=0
        )
        async for event in connection:
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type in ("response.completed", "response.incomplete"):
                break
    return text
