"""Steps on the page that the tests in a browser share."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

ANSWER_MS = 60_000


@contextmanager
def open_page(browser: Browser, url: str, **options: object) -> Iterator[Page]:
    """A page that fails its test for anything the browser complains about."""
    context = browser.new_context(base_url=url, **options)  # type: ignore[arg-type]
    page = context.new_page()
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_default_timeout(ANSWER_MS)
    page.goto("/")
    yield page
    context.close()
    assert not complaints, "\n".join(complaints)


@contextmanager
def open_login(browser: Browser, url: str, **options: object) -> Iterator[Page]:
    """The page as a service shows it that wants a key."""
    page = browser.new_page(base_url=url, **options)  # type: ignore[arg-type]
    page.route("**/v1/chatserve/me", lambda route: route.fulfill(status=401, json={}))
    page.goto("/")
    expect(page.get_by_label("Your key")).to_be_visible()
    yield page
    page.close()


def composer(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message")


def last_answer(page: Page) -> Locator:
    return page.get_by_role("article", name="Answer").last


def said(page: Page) -> Locator:
    return page.get_by_role("article", name="You")


def expect_phase(page: Page, phase: str) -> None:
    expect(last_answer(page)).to_have_attribute("data-phase", re.compile(phase), timeout=ANSWER_MS)


def say(page: Page, text: str) -> None:
    """Send a message and end its answer: the model likes to talk for long."""
    send(page, text)
    expect_phase(page, "streaming|completed")
    stop(page)


def send(page: Page, text: str) -> None:
    composer(page).fill(text)
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    composer(page).press("Enter")


def stop(page: Page) -> None:
    page.keyboard.press("Escape")  # does nothing if the answer has just ended
    expect_phase(page, "completed|stopped|cut")


def list_link(page: Page, words: str) -> Locator:
    conversations = page.get_by_role("navigation", name="Conversations")
    return conversations.get_by_role("link", name=re.compile(words))


def open_menu(page: Page, words: str) -> Locator:
    """Open what can be done with a conversation, and return its row."""
    conversations = page.get_by_role("navigation", name="Conversations")
    link = page.get_by_role("link", name=re.compile(words))
    row = conversations.get_by_role("listitem").filter(has=link).first
    row.hover()
    row.get_by_role("button", name=re.compile("^More for")).click()
    return row


def delete_conversation(page: Page, words: str) -> None:
    open_menu(page, words).get_by_role("button", name="Delete").click()
