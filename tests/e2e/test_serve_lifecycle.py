"""`chatserve serve` from start to end, with its real children and a tiny model."""

import os
import signal
import socket
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from e2e.lifecycle_helpers import Watched, is_running, wait_until_gone, watched
from e2e.tiny_model import write_tiny_model

from chatserve.store.embedded import EmbeddedServer

READY = "chatserve is ready"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@dataclass(frozen=True)
class Place:
    """Where a service under test lives: its data folder, its port, its model."""

    data_dir: Path
    port: int
    model: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, *flags: str) -> list[str]:
        command = [sys.executable, "-m", "chatserve", "serve", "--model", str(self.model)]
        command += ["--data-dir", str(self.data_dir), "--port", str(self.port)]
        return [*command, "--num-pages", "64", "--log-level", "debug", *flags]

    async def post(self, path: str, **body: object) -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=self.url, timeout=60) as client:
            response = await client.post(path, json=body)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def get(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.url, timeout=60) as client:
            return await client.get(path)

    async def chat(self) -> int:
        """Ask for three tokens and return how many came."""
        answer = await self.post(
            "/v1/chat/completions",
            model=self.model.name,
            messages=[{"role": "user", "content": "Say something."}],
            max_tokens=3,
            ignore_eos=True,
        )
        return int(answer["usage"]["completion_tokens"])


@pytest.fixture
def place(tmp_path: Path, model: Path) -> Place:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return Place(tmp_path / "data", probe.getsockname()[1], model)


def assert_nobody_is_left(service: Watched) -> None:
    assert {"store", "engine", "gateway", "guardian"} <= set(service.pids)
    assert not any(map(is_running, service.pids.values()))


async def test_service_answers_and_an_interrupt_ends_it_all(place: Place) -> None:
    async with watched(place.serve()) as service:
        await service.wait_for(READY)
        num_tokens = await place.chat()
        service.signal(signal.SIGINT)
        code = await service.wait_for_end()

    assert num_tokens == 3
    assert place.url in service.output
    assert code == 0
    assert "Traceback" not in service.output
    assert_nobody_is_left(service)


async def test_killed_service_leaves_nobody_behind_and_loses_nothing(place: Place) -> None:
    async with watched(place.serve()) as killed:
        await killed.wait_for(READY)
        conversation = await place.post("/v1/conversations")
        killed.signal(signal.SIGKILL)
        await killed.wait_for_end()
        await wait_until_gone(killed.pids.values())
    assert_nobody_is_left(killed)

    async with watched(place.serve()) as service:
        await service.wait_for(READY)
        found = await place.get(f"/v1/conversations/{conversation['id']}")

    assert found.status_code == 200


@pytest.mark.parametrize("name", ["engine", "gateway", "store"])
async def test_service_works_again_after_a_part_of_it_was_killed(place: Place, name: str) -> None:
    async with watched(place.serve()) as service:
        await service.wait_for(READY)
        os.kill(service.pids[name], signal.SIGKILL)
        await service.wait_for(f"started the {name}", times=2)
        await service.wait_for("ready again")
        num_tokens = await place.chat()

    assert num_tokens == 3


async def test_outside_store_is_used_and_outlives_the_service(place: Place, tmp_path: Path) -> None:
    store = EmbeddedServer(tmp_path / "outside")
    await store.start()
    try:
        async with watched(place.serve("--redis-url", store.url)) as service:
            await service.wait_for(READY)
            num_tokens = await place.chat()
            service.signal(signal.SIGTERM)
            code = await service.wait_for_end()

        assert (num_tokens, code) == (3, 0)
        assert "store" not in service.pids
        assert store.pid is not None
        assert is_running(store.pid)
    finally:
        await store.stop()


async def test_taken_port_is_one_line_and_exit_code_2(place: Place) -> None:
    with socket.create_server(("127.0.0.1", place.port)):
        async with watched(place.serve()) as service:
            code = await service.wait_for_end()

    assert code == 2
    assert f"cannot listen on 127.0.0.1:{place.port}" in service.output
    assert service.output.count("\n") == 1


async def test_model_that_cannot_be_read_ends_the_service_at_once(
    place: Place, tmp_path: Path
) -> None:
    model = write_tiny_model(tmp_path / "mystery")
    config = (model / "config.json").read_text()
    (model / "config.json").write_text(config.replace('"llama"', '"mystery"'))

    async with watched(replace(place, model=model).serve()) as service:
        code = await service.wait_for_end()

    assert code == 2
    assert service.output.count("started the engine") == 1
    assert "chatserve: architecture 'mystery' is not supported" in service.output
    assert "Traceback" not in service.output
    assert not any(map(is_running, service.pids.values()))
