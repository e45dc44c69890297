"""Asks one question over server-sent events or over the WebSocket, and notes when text came.

Owns the two protocols as a client sees them. Never raises for what a server does: an answer that
was refused, broken off or cut short says so in `Answer.error`, so that it cannot pass for a fast
one.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
from websockets import WebSocketException
from websockets.asyncio.client import connect

from benchmarks.chat_load.scenario import Message

_ERROR_LENGTH = 200


@dataclass(slots=True)
class Answer:
    """One answer as its client saw it. Times are of `time.perf_counter`; mutable while it comes."""

    max_tokens: int
    began_s: float = field(default_factory=time.perf_counter)
    stamps_s: list[float] = field(default_factory=list)  # when each piece of text came
    text: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    is_finished: bool = False
    error: str = ""

    def add_text(self, text: str) -> None:
        if text:
            self.stamps_s.append(time.perf_counter())
            self.text += text

    def fail(self, reason: object) -> None:
        self.error = str(reason)[:_ERROR_LENGTH] or repr(reason)

    def check(self) -> None:
        """Find what is wrong with an answer that ended without an error."""
        if self.error:
            return
        if not self.is_finished:
            self.fail("the stream ended before the answer did")
        elif self.output_tokens != self.max_tokens:
            self.fail(f"{self.output_tokens} tokens instead of {self.max_tokens}")
        elif not self.stamps_s:
            self.fail("an answer without text")


class ChatClient(Protocol):
    """Asks a server for one answer."""

    async def ask(self, messages: Sequence[Message], max_tokens: int) -> Answer: ...


class SSEClient:
    """Asks over POST /v1/chat/completions, one connection for each answer.

    Owns: nothing; the HTTP client is the caller's, with the server's address as its base.
    Used from: the event loop.
    """

    def __init__(self, http: httpx.AsyncClient, model: str):
        self._http = http
        self._model = model

    async def ask(self, messages: Sequence[Message], max_tokens: int) -> Answer:
        answer = Answer(max_tokens)
        try:
            await self._stream(answer, messages)
        except (httpx.HTTPError, ValueError, KeyError) as error:
            answer.fail(repr(error))
        answer.check()
        return answer

    async def _stream(self, answer: Answer, messages: Sequence[Message]) -> None:
        body = {
            "model": self._model,
            "messages": list(messages),
            "max_tokens": answer.max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        path = "/v1/chat/completions"
        async with self._http.stream("POST", path, json=body) as reply:
            if reply.status_code != httpx.codes.OK:
                reason = (await reply.aread()).decode(errors="replace")
                answer.fail(f"status {reply.status_code}: {reason}")
                return
            async for line in reply.aiter_lines():
                data = line.removeprefix("data:").strip()
                if data != line and data != "[DONE]":
                    _take_chunk(answer, json.loads(data))


class WebSocketClient:
    """Asks over the WebSocket at /v1/responses, one connection for each answer.

    Used from: the event loop.
    """

    def __init__(self, url: str, model: str, headers: dict[str, str]):
        self._url = url.replace("http", "ws", 1) + "/v1/responses"
        self._model = model
        self._headers = headers

    async def ask(self, messages: Sequence[Message], max_tokens: int) -> Answer:
        answer = Answer(max_tokens)
        try:
            await self._stream(answer, messages)
        except (OSError, WebSocketException, ValueError, KeyError) as error:
            answer.fail(repr(error))
        answer.check()
        return answer

    async def _stream(self, answer: Answer, messages: Sequence[Message]) -> None:
        create = {
            "type": "response.create",
            "model": self._model,
            "input": list(messages),
            "max_output_tokens": answer.max_tokens,
            "temperature": 0,
            "ignore_eos": True,
        }
        async with connect(self._url, additional_headers=self._headers, max_size=None) as socket:
            answer.began_s = time.perf_counter()  # the handshake is no part of the answer
            await socket.send(json.dumps(create))
            async for frame in socket:
                _take_event(answer, json.loads(frame))
                if answer.is_finished or answer.error:
                    return


def _take_chunk(answer: Answer, chunk: dict[str, Any]) -> None:
    if chunk.get("error"):
        answer.fail(chunk["error"])
    for choice in chunk.get("choices", []):
        answer.add_text(choice["delta"].get("content") or "")
        answer.is_finished |= bool(choice.get("finish_reason"))
    if usage := chunk.get("usage"):
        answer.prompt_tokens = usage["prompt_tokens"]
        answer.output_tokens = usage["completion_tokens"]
        answer.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0


def _take_event(answer: Answer, event: dict[str, Any]) -> None:
    match event["type"]:
        case "response.output_text.delta":
            answer.add_text(event["delta"])
        case "response.completed" | "response.incomplete":
            usage = event["response"]["usage"]
            answer.prompt_tokens = usage["input_tokens"]
            answer.output_tokens = usage["output_tokens"]
            answer.cached_tokens = usage["input_tokens_details"]["cached_tokens"]
            answer.is_finished = True
        case "response.failed" | "error":
            answer.fail(json.dumps(event))
