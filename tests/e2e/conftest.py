"""Fixtures of the end-to-end tests: one real service on the default model, and a browser."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

START_DEADLINE_S = 120

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def service_url(
    default_model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of `chatserve serve` on the default model, with a data folder of its own.

    Model and converted weights are those of the user's data folder, so that nothing is made twice.
    """
    folder = tmp_path_factory.mktemp("service")
    data_dir = default_model_path.parent.parent
    (data_dir / "weights").mkdir(exist_ok=True)
    for name in ("models", "weights"):
        (folder / name).symlink_to(data_dir / name)
    port = free_port()
    command = [sys.executable, "-m", "chatserve", "serve", "--port", str(port)]
    command += ["--data-dir", str(folder), "--num-pages", "1024", "--log-level", "warning"]
    log = (folder / "log").open("w")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield _ready_url(port, process, folder / "log")
    finally:
        process.terminate()
        process.wait(timeout=60)
        log.close()


def _ready_url(port: int, process: "subprocess.Popen[bytes]", log: Path) -> str:
    url = f"http://127.0.0.1:{port}"
    retries = httpx.HTTPTransport(retries=3)
    with httpx.Client(base_url=url, transport=retries, timeout=10) as client:
        for _ in range(START_DEADLINE_S * 5):
            assert process.poll() is None, log.read_text()
            try:
                if client.get("/ready").status_code == 200:
                    return url
            except httpx.TransportError:
                pass
            try:
                process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError(f"not ready within {START_DEADLINE_S} s:\n{log.read_text()}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, closed with its module: while Playwright runs, no test can have an event loop."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=list(CHROMIUM_FLAGS)
        )
        yield chromium
        chromium.close()
