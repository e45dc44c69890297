"""A client that wants one answer and does not give up: it reconnects, resumes, and checks.

Owns the rule that the drills are about: every event arrives exactly once and in order, whatever
breaks on the way. An event that is missing, doubled or out of order fails the test at once.
"""

import asyncio
import itertools
import json
from collections.abc import Sequence
from typing import Any

import httpx
import websockets
from websockets.asyncio.client import ClientConnection

Event = dict[str, Any]

TIMEOUT_S = 40.0
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
RETRY_S = 0.1


class DrillClient:
    """One turn of one conversation.

    Owns: the events received so far.
    Used from: a test, which breaks things while `run` goes on.
    """

    def __init__(self, ports: Sequence[int], conversation: str, text: str) -> None:
        self._ports = itertools.cycle(ports)
        self._create = {
            "type": "response.create",
            "event_id": f"turn-{conversation}",
            "model": "echo",
            "conversation": conversation,
            "input": text,
        }
        self.events: list[Event] = []
        self.num_connections = 0

    @property
    def text(self) -> str:
        return "".join(e["delta"] for e in self.events if e["type"].endswith("text.delta"))

    @property
    def has_ended(self) -> bool:
        return bool(self.events) and self.events[-1]["type"] in TERMINAL

    async def run(self) -> None:
        """Get the whole answer, over as many connections as it takes."""
        async with asyncio.timeout(TIMEOUT_S):
            while not self.has_ended:
                try:
                    await self._read_some(next(self._ports))
                except (OSError, websockets.WebSocketException, TimeoutError):
                    await asyncio.sleep(RETRY_S)

    async def until_text(self, num_characters: int) -> None:
        """Return once so much of the answer has come."""
        async with asyncio.timeout(TIMEOUT_S):
            while len(self.text) < num_characters:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.005)

    async def _read_some(self, port: int) -> None:
        uri = f"ws://127.0.0.1:{port}/v1/responses"
        async with websockets.connect(uri, open_timeout=3) as connection:
            self.num_connections += 1
            await connection.send(json.dumps(self._request()))
            await self._receive(connection)

    def _request(self) -> Event:
        if not self.events:
            return self._create
        return {
            "type": "chatserve:response.resume",
            "response_id": self.events[0]["response"]["id"],
            "starting_after": self.events[-1]["sequence_number"],
        }

    async def _receive(self, connection: ClientConnection) -> None:
        while not self.has_ended:
            event = json.loads(await connection.recv())
            if event["type"] == "error":
                assert event["status"] == 503, event
                await asyncio.sleep(RETRY_S)
                return
            if "sequence_number" in event:
                assert event["sequence_number"] == len(self.events), event
                self.events.append(event)


async def create_conversation(port: int) -> httpx.Response:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as http:
        return await http.post("/v1/conversations", json={})


async def messages_of(port: int, conversation: str) -> list[tuple[str, str]]:
    """Return role and text of every message, the oldest first."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as http:
        reply = await http.get(f"/v1/conversations/{conversation}/items?order=asc")
    assert reply.status_code == 200, reply.text
    return [(item["role"], item["content"][0]["text"]) for item in reply.json()["data"]]
