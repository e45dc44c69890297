"""The page in a real browser on a service that is busy, stopped, killed and started again."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from e2e.chat_page import (
    LONG,
    begin_chat,
    copied_text,
    expect_as_stored,
    expect_connection,
    expect_longer,
    expect_phase,
    last_answer,
    let_it_begin,
    open_context,
    said,
    say,
    send,
    shown_text,
    stop,
    stored_so_far,
    stored_text,
)
from e2e.real_service import Service
from playwright.sync_api import Browser, BrowserContext, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

# What the browser says of a service that is away, and of one that comes back.
EXPECTED = (
    r"net::ERR_(CONNECTION|EMPTY_RESPONSE|SOCKET|INCOMPLETE)|WebSocket connection to .* failed"
    r"|status of 503"
)

# What is said of a long prompt beside its bar; nothing while there is none.
BAR_AND_WORDS = """() => {
    const progress = document.querySelector("article .progress");
    const bar = progress?.querySelector("progress") ?? null;
    return bar !== null && bar.checkVisibility() && progress.textContent;
}"""


@pytest.fixture
def context(browser: Browser, own_service: Service) -> Iterator[BrowserContext]:
    """One browser of one reader; a test opens its tabs."""
    with open_context(browser, own_service.url, allowed=EXPECTED) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Page:
    page = context.new_page()
    begin_chat(page, LONG)
    return page


@contextmanager
def answer_of_somebody_else(service: Service) -> Iterator[None]:
    """Keep the engine busy."""
    with httpx.Client(base_url=service.url, timeout=60) as client:
        model = client.get("/v1/models").json()["data"][0]["id"]
        body = {"model": model, "input": "Count the sheep.", "background": True, **LONG}
        reply = client.post("/v1/responses", json=body).raise_for_status()
        try:
            yield
        finally:
            client.post(f"/v1/responses/{reply.json()['id']}/cancel").raise_for_status()


def test_an_answer_is_stopped_while_it_waits_for_its_turn(own_service: Service, page: Page) -> None:
    with answer_of_somebody_else(own_service):
        send(page, "Write a very long story about a river.")
        expect_phase(page, "queued")
        expect(last_answer(page).locator(".progress")).to_contain_text("queue")

        page.get_by_role("button", name="Stop").click()

        expect_phase(page, "stopped")
        expect(last_answer(page).locator(".markdown")).to_have_count(0)
    page.reload()
    expect_phase(page, "stopped")
    expect(last_answer(page).locator(".markdown")).to_have_count(0)


def test_an_answer_is_stopped_while_its_prompt_is_computed(page: Page) -> None:
    prompt = " ".join(f"{number} sheep jump over the fence." for number in range(450))
    send(page, prompt)
    # Looks every frame: `expect` would rest while the prompt is computed to its end.
    page.wait_for_selector("[data-phase=prefilling]", state="attached")

    page.keyboard.press("Escape")

    expect_phase(page, "stopped")
    expect(last_answer(page).locator(".markdown")).to_have_count(0)
    page.get_by_role("button", name="New chat").click()
    say(page, "How many was that?")
    expect_phase(page, "stopped")
    expect_as_stored(page)


def test_a_worker_that_is_killed_is_taken_over_without_a_seam(
    own_service: Service, page: Page
) -> None:
    own_service.start_worker()
    send(page, "Explain in many words how bread is made.")
    let_it_begin(page)
    begun = stored_so_far(page)

    own_service.kill_busy_worker()

    expect_longer(page, shown_text(page))
    stop(page)
    expect_phase(page, "stopped")
    expect_as_stored(page)
    assert stored_text(page).startswith(begun)


def test_a_reader_is_told_of_a_machine_that_stops_and_the_figures_stay_true(
    own_service: Service, page: Page
) -> None:
    """A reload used to show a queue of half a minute, and no time to the first token."""
    send(page, "Write a very long story about a river.")
    let_it_begin(page)
    ttft = last_answer(page).locator(".ttft").inner_text()

    own_service.kill_busy_worker()

    progress = last_answer(page).locator(".progress")
    expect(progress).to_contain_text("The machine that was answering has stopped", timeout=60_000)
    frozen = shown_text(page)
    expect(progress).to_have_count(0, timeout=120_000)
    expect_longer(page, frozen)
    stop(page)
    expect_as_stored(page)
    figures = figures_of(page)
    assert last_answer(page).locator(".ttft").inner_text() == ttft
    page.reload()
    expect_phase(page, "stopped")
    assert figures_of(page) == figures


def figures_of(page: Page) -> str:
    """Return what the inspector says of the last answer, a figure a line."""
    return last_answer(page).locator(".figures").get_attribute("title") or ""


def test_a_long_prompt_is_read_before_the_eyes_of_who_waits(page: Page) -> None:
    send(page, "A sentence that a reader does not read. " * 400)

    progress = last_answer(page).locator(".progress")
    words = page.wait_for_function(BAR_AND_WORDS).json_value()
    assert re.search(r"reading [\d,]+ of [\d,]+ tokens", words), words
    expect_phase(page, "streaming")
    expect(progress).to_have_count(0)
    stop(page)


def test_two_tabs_are_in_step_after_the_service_was_started_again(
    own_service: Service, context: BrowserContext, page: Page
) -> None:
    send(page, "Write a very long story about a river.")
    let_it_begin(page)
    other = context.new_page()
    other.goto(page.url)
    let_it_begin(other)
    shown, begun = shown_text(page), stored_so_far(page)

    own_service.stop()
    for tab in (page, other):
        expect_connection(tab, "reconnecting")
    own_service.start()
    for tab in (page, other):
        expect_connection(tab, "^live$")
        expect_longer(tab, shown)
    stop(other)

    for tab in (page, other):
        expect_phase(tab, "stopped")
        expect(tab.get_by_role("article", name="Answer")).to_have_count(1)
        expect_as_stored(tab)
    assert stored_text(page).startswith(begun)


def test_an_answer_survives_a_service_that_is_killed_and_started_again(
    own_service: Service, page: Page
) -> None:
    send(page, "Write a very long story about a river.")
    let_it_begin(page)
    begun = stored_so_far(page)

    own_service.kill()
    expect_connection(page, "reconnecting")
    shown = shown_text(page)
    own_service.start()
    expect_connection(page, "^live$")
    expect_longer(page, shown)
    stop(page)

    expect_as_stored(page)
    whole = stored_text(page)
    assert whole.startswith(begun)
    page.reload()
    expect_phase(page, "stopped")
    assert copied_text(page) == whole


def test_a_reload_without_a_service_shows_what_was_read(own_service: Service, page: Page) -> None:
    await_shell(page)
    say(page, "Name the colour of fresh snow.")
    shown = shown_text(page)
    page.reload()
    expect(last_answer(page).locator(".markdown")).to_have_text(shown, use_inner_text=True)

    own_service.stop()
    page.reload()

    expect(said(page)).to_contain_text("fresh snow")
    expect(last_answer(page).locator(".markdown")).to_have_text(shown, use_inner_text=True)
    expect(page.get_by_text("Offline, reading only")).to_be_visible()
    conversations = page.get_by_role("navigation", name="Conversations")
    address = page.url.partition("#")[2]
    expect(conversations.locator(f'a[href$="#{address}"]')).to_be_visible()
    own_service.start()
    expect_connection(page, "^live$")
    expect(page.get_by_text("Offline, reading only")).to_have_count(0)


def await_shell(page: Page) -> None:
    """Wait until the browser has the files of the page, and answers from them."""
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
    page.wait_for_function("() => navigator.serviceWorker.controller !== null")
