"""`chatserve prompt` as tests run it: on one store, with its output in memory."""

import io
from dataclasses import dataclass, field
from pathlib import Path

from gateway.fake_model import MODEL

from chatserve.admin.output import Console
from chatserve.admin.prompt_command import run_prompt_command
from chatserve.admin.prompt_config import PromptConfig
from chatserve.command_line import load_config
from chatserve.engine.api import EngineStats
from chatserve.store.connection import Store
from chatserve.store.workers import WorkerBeat

TEXT = "You are the help desk\r\nof a small library. 📚"
SIZE = "63 tokens in 4 pages"
"""Of the prompt of this text: a token for each byte and each control token."""


@dataclass(slots=True)
class Terminal:
    """A terminal on one store."""

    url: str
    folder: Path
    out: io.StringIO = field(default_factory=io.StringIO)
    progress: io.StringIO = field(default_factory=io.StringIO)

    async def run(self, *argv: str, wait_s: float = 20.0) -> int:
        config = load_config(["prompt", *argv, "--redis-url", self.url], {})
        assert isinstance(config, PromptConfig)
        return await run_prompt_command(config, Console(self.out, self.progress), wait_s=wait_s)

    async def add(self, name: str, *flags: str, text: str = TEXT, wait_s: float = 20.0) -> int:
        return await self.run("add", name, "--file", self.file(text), *flags, wait_s=wait_s)

    def file(self, text: str) -> str:
        path = self.folder / "prompt.txt"
        path.write_bytes(text.encode())
        return str(path)


async def beat_in_silence(store: Store, worker_id: str) -> None:
    """Let a worker be alive that says nothing of prompts."""
    sign = WorkerBeat(worker_id, MODEL, "card", "1.0", EngineStats())
    await store.workers.heartbeat(sign, 60_000)
