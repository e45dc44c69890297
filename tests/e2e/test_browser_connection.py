"""The page in a real browser whose connection to the real service fails in one way or another."""

import re
from collections.abc import Iterator

import pytest
from e2e.chat_page import delete_conversation, expect_phase, last_answer, send, stop
from e2e.real_service import Service
from playwright.sync_api import Browser, BrowserContext, Locator, Page, WebSocketRoute, expect

pytestmark = pytest.mark.needs_program("chromium")

WAIT_MS = 60_000

# What a page sees of a proxy that answers the upgrade by an error.
NO_WEBSOCKET = """
window.WebSocket = class {
  readyState = 0;
  constructor() {
    setTimeout(() => {
      this.readyState = 3;
      this.onclose?.({ code: 1006, reason: "" });
    }, 20);
  }
  send() {}
  close() {}
};
"""


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One browser of one reader; a test opens its tabs."""
    context = browser.new_context()
    context.set_default_timeout(WAIT_MS)
    yield context
    context.close()


def open_tab(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(url)
    return page


def expect_connection(page: Page, words: str) -> None:
    expect(page.locator("header .connection")).to_have_text(re.compile(words), timeout=WAIT_MS)


def text_of(answer: Locator) -> str:
    return answer.locator(".markdown").inner_text()


def let_it_begin(page: Page) -> str:
    """Wait for the first words of the last answer, and return them."""
    expect_phase(page, "streaming|completed|cut")
    expect(last_answer(page).locator(".markdown")).not_to_be_empty()
    return text_of(last_answer(page)).strip()[:20]


def await_shell(page: Page) -> None:
    """Wait until the browser has the files of the page, and answers from them."""
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
    page.wait_for_function("() => navigator.serviceWorker.controller !== null")


def test_an_answer_survives_a_time_without_network(
    context: BrowserContext, service_url: str
) -> None:
    page = open_tab(context, service_url)
    send(page, "Explain in many words how bread is made.")
    begun = let_it_begin(page)

    context.set_offline(True)
    expect_connection(page, "offline, reading only")
    expect(last_answer(page).locator(".markdown")).to_contain_text(begun)
    expect(page.get_by_text("You are offline")).to_be_visible()
    context.set_offline(False)
    expect_connection(page, "^live$")
    stop(page)

    shown = text_of(last_answer(page))
    page.reload()
    expect(last_answer(page).locator(".markdown")).to_have_text(shown, use_inner_text=True)


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_where_no_websocket_gets_through_the_chat_goes_over_http(
    context: BrowserContext, service_url: str, how: str
) -> None:
    if how == "refused":
        context.add_init_script(NO_WEBSOCKET)
    else:
        context.route_web_socket(re.compile("/v1/responses"), lambda _: None)
    page = open_tab(context, service_url)
    expect_connection(page, "live over HTTP")

    send(page, "Explain in many words how bread is made.")
    let_it_begin(page)
    page.get_by_role("button", name="Stop").click()
    expect_phase(page, "stopped")
    send(page, "Write a very long story about a river.")
    begun = let_it_begin(page)
    page.reload()
    expect_connection(page, "live over HTTP")

    expect(page.get_by_role("article", name="You")).to_have_count(2)
    expect(last_answer(page).locator(".markdown")).to_contain_text(begun)
    stop(page)


def test_a_socket_takes_over_from_http_once_it_gets_through(
    context: BrowserContext, service_url: str
) -> None:
    isolated = [True]

    def answer(route: WebSocketRoute) -> None:
        if not isolated[0]:
            route.connect_to_server()

    context.route_web_socket(re.compile("/v1/responses"), answer)
    page = open_tab(context, service_url)
    expect_connection(page, "live over HTTP")
    send(page, "Explain in many words how bread is made.")
    begun = let_it_begin(page)

    isolated[0] = False
    page.evaluate("() => window.dispatchEvent(new Event('online'))")

    expect_connection(page, "^live$")
    expect(last_answer(page).locator(".markdown")).to_contain_text(begun)
    stop(page)


def test_two_tabs_on_one_session_are_in_step(context: BrowserContext, service_url: str) -> None:
    first = open_tab(context, service_url)
    send(first, "Name the colour of fresh snow.")
    let_it_begin(first)
    stop(first)
    second = open_tab(context, first.url)
    expect(second.get_by_role("article", name="Answer")).to_have_count(1)
    second.get_by_role("textbox", name="Message").fill("I am writing")

    send(first, "Explain in many words how bread is made.")
    begun = let_it_begin(first)
    expect(second.get_by_role("article", name="You")).to_have_count(2)
    expect(last_answer(second).locator(".markdown")).to_contain_text(begun)
    stop(first)

    expect_phase(second, "completed|stopped|cut")
    expect(last_answer(second).locator(".markdown")).to_have_text(
        text_of(last_answer(first)), use_inner_text=True
    )
    expect(second.get_by_role("textbox", name="Message")).to_be_focused()
    expect(second.get_by_role("textbox", name="Message")).to_have_value("I am writing")


def test_a_session_deleted_in_one_tab_is_gone_in_the_other(
    context: BrowserContext, service_url: str
) -> None:
    first = open_tab(context, service_url)
    send(first, "Name the smell of fresh rain.")
    let_it_begin(first)
    stop(first)
    second = open_tab(context, first.url)
    expect(second.get_by_role("article", name="Answer")).to_have_count(1)

    delete_conversation(first, "fresh rain")

    # Until then the deletion can be taken back in the first tab.
    expect(second.get_by_text("There is no such conversation")).to_be_visible(timeout=WAIT_MS)


def test_a_draft_survives_a_reload(context: BrowserContext, service_url: str) -> None:
    page = open_tab(context, service_url)
    page.get_by_role("textbox", name="Message").fill("Not finished")

    page.reload()

    expect(page.get_by_role("textbox", name="Message")).to_have_value("Not finished")


def test_an_answer_survives_a_service_that_is_killed_and_started_again(
    context: BrowserContext, own_service: Service
) -> None:
    page = open_tab(context, own_service.url)
    send(page, "Write a very long story about a river.")
    begun = let_it_begin(page)

    own_service.kill()
    expect_connection(page, "reconnecting")
    own_service.start()
    expect_connection(page, "^live$")
    expect(last_answer(page).locator(".markdown")).to_contain_text(begun)
    stop(page)

    shown = text_of(last_answer(page))
    page.reload()
    expect(last_answer(page).locator(".markdown")).to_have_text(shown, use_inner_text=True)


def figures_of(page: Page) -> str:
    """Return what the inspector says of the last answer, a figure a line."""
    return last_answer(page).locator(".figures").get_attribute("title") or ""


def test_a_reader_is_told_of_a_machine_that_stops_and_the_figures_stay_true(
    context: BrowserContext, own_service: Service
) -> None:
    """A reload used to show a queue of half a minute, and no time to the first token."""
    page = open_tab(context, own_service.url)
    send(page, "Write a very long story about a river.")
    begun = let_it_begin(page)
    ttft = last_answer(page).locator(".ttft").inner_text()

    own_service.kill_engine()
    progress = last_answer(page).locator(".progress")
    expect(progress).to_contain_text("The machine that was answering has stopped", timeout=WAIT_MS)
    frozen = text_of(last_answer(page))
    expect(progress).to_have_count(0, timeout=2 * WAIT_MS)
    expect(last_answer(page).locator(".markdown")).to_contain_text(begun)
    expect(last_answer(page).locator(".markdown")).not_to_have_text(frozen, use_inner_text=True)
    stop(page)
    shown, figures = text_of(last_answer(page)), figures_of(page)
    assert last_answer(page).locator(".ttft").inner_text() == ttft
    page.reload()

    expect(last_answer(page).locator(".markdown")).to_have_text(shown, use_inner_text=True)
    assert figures_of(page) == figures


def test_a_long_prompt_is_read_before_the_eyes_of_who_waits(
    context: BrowserContext, own_service: Service
) -> None:
    page = open_tab(context, own_service.url)

    send(page, "A sentence that a reader does not read. " * 400)

    progress = last_answer(page).locator(".progress")
    expect(progress).to_have_text(re.compile(r"reading [\d,]+ of [\d,]+ tokens"), timeout=WAIT_MS)
    expect(progress.locator("progress")).to_be_visible()
    expect_phase(page, "streaming|completed|cut")
    expect(progress).to_have_count(0)


def test_a_reload_without_a_service_shows_what_was_read(
    context: BrowserContext, own_service: Service
) -> None:
    page = open_tab(context, own_service.url)
    await_shell(page)
    send(page, "Name the colour of fresh snow.")
    let_it_begin(page)
    stop(page)
    said = text_of(last_answer(page))
    page.reload()
    expect(last_answer(page).locator(".markdown")).to_have_text(said, use_inner_text=True)

    own_service.stop()
    page.reload()

    expect(page.get_by_role("article", name="You")).to_contain_text("fresh snow")
    expect(last_answer(page).locator(".markdown")).to_have_text(said, use_inner_text=True)
    expect(page.get_by_text("Offline, reading only")).to_be_visible()
    conversations = page.get_by_role("navigation", name="Conversations")
    address = page.url.partition("#")[2]
    expect(conversations.locator(f'a[href$="#{address}"]')).to_be_visible()
    own_service.start()
    expect_connection(page, "^live$")
    expect(page.get_by_text("Offline, reading only")).to_have_count(0)
