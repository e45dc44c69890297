"""Fixtures of the end-to-end tests: real services on the default model, and a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.chat_page import LONG, open_page
from e2e.real_service import Service
from playwright.sync_api import Browser, Page, expect, sync_playwright

# The engine and the browser share two cores with whatever else the machine does. What a test waits
# for comes; how soon is the business of benchmarks.
EXPECT_MS = 20_000
NARROW = ("--max-num-seqs", "1", "--drain", "1")  # one answer at a time, and soon gone
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def shared_service(
    default_model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service that runs as long as the tests do."""
    service = Service(tmp_path_factory.mktemp("service"), default_model_path)
    service.start()
    yield service
    service.stop()


@pytest.fixture
def service_url(shared_service: Service) -> Iterator[str]:
    """The address of a service in which there are no conversations, and no answers in flight."""
    yield shared_service.url
    shared_service.forget_conversations()


@pytest.fixture(scope="session")
def breakable_service(
    default_model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service for `own_service`."""
    service = Service(tmp_path_factory.mktemp("service"), default_model_path, *NARROW)
    yield service
    service.stop()


@pytest.fixture
def own_service(breakable_service: Service) -> Iterator[Service]:
    """A narrow service that its test may stop, kill and start again: see `NARROW`."""
    breakable_service.start()
    yield breakable_service
    breakable_service.start()
    breakable_service.forget_conversations()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, closed with its module: while Playwright runs, no test can have an event loop."""
    expect.set_options(timeout=EXPECT_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=list(CHROMIUM_FLAGS)
        )
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, service_url: str) -> Iterator[Page]:
    """The page with a new chat, whose answers last until they are stopped."""
    with open_page(browser, service_url, answers=LONG) as page:
        yield page
