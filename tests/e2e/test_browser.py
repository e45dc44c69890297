"""The page in a real browser, on the real service and model."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

SYSTEM = "You are a friendly librarian who answers in one or two short sentences."
ANSWER_MS = 60_000


@pytest.fixture
def page(browser: Browser, service_url: str) -> Iterator[Page]:
    """A page that fails the test for anything the browser complains about."""
    context = browser.new_context(base_url=service_url)
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
    assert complaints == []


def send(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message").fill(text)
    page.get_by_role("textbox", name="Message").press("Enter")


def last_answer(page: Page) -> Locator:
    return page.get_by_role("article", name="Answer").last


def expect_phase(answer: Locator, phase: str) -> None:
    expect(answer).to_have_attribute("data-phase", re.compile(phase), timeout=ANSWER_MS)


def let_it_say_something(page: Page) -> Locator:
    """Wait for the last answer's first words, then end it: the model likes to talk for long."""
    answer = last_answer(page)
    expect_phase(answer, "streaming|completed")
    expect(answer.locator(".markdown")).not_to_be_empty()
    page.keyboard.press("Escape")  # stops it, and does nothing if it has just ended
    expect_phase(answer, "completed|stopped")
    return answer


def test_a_chat_streams_and_shows_what_was_cached(page: Page) -> None:
    page.get_by_role("button", name="Add a system prompt").click()
    page.get_by_role("textbox", name="System prompt").fill(SYSTEM)
    send(page, "What is a library card?")
    let_it_say_something(page)
    send(page, "And what does it cost?")
    answer = let_it_say_something(page)

    figures = answer.get_by_role("group", name="Figures")
    words = figures.locator(".cached-tokens").inner_text()
    found = re.fullmatch(r"([\d,]+) of ([\d,]+) prompt tokens cached", words)
    assert found, words
    num_cached, num_prompt = (int(number.replace(",", "")) for number in found.groups())
    assert num_prompt / 2 < num_cached < num_prompt
    expect(figures.locator(".ttft")).to_contain_text("TTFT")
    expect(figures).to_have_attribute("title", re.compile("Time to first token"))


def test_stop_ends_an_answer_and_keeps_what_was_said(page: Page) -> None:
    send(page, "Write a very long story about a river.")
    answer = last_answer(page)
    expect_phase(answer, "streaming")

    page.get_by_role("button", name="Stop").click()

    expect_phase(answer, "stopped")
    text = answer.locator(".markdown").inner_text()
    page.reload()
    expect(last_answer(page).locator(".markdown")).to_have_text(text)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_reload_in_the_middle_of_an_answer_loses_nothing(page: Page) -> None:
    send(page, "Explain in many words how bread is made.")
    expect_phase(last_answer(page), "streaming")
    begun = last_answer(page).locator(".markdown").inner_text()

    page.reload()
    expect_phase(last_answer(page), "streaming|completed")
    expect(last_answer(page).locator(".markdown")).to_contain_text(begun.strip()[:20])
    let_it_say_something(page)


def test_conversations_are_listed_opened_by_their_link_and_deleted(page: Page) -> None:
    send(page, "Name the colour of fresh snow.")
    let_it_say_something(page)
    address = page.url
    page.get_by_role("button", name="New chat").click()
    expect(page.get_by_role("article", name="Answer")).to_have_count(0)

    page.goto(address)
    expect(page.get_by_role("article", name="You")).to_contain_text("fresh snow")

    conversations = page.get_by_role("navigation", name="Conversations")
    link = conversations.get_by_role("link", name=re.compile("colour of fresh snow")).first
    link.hover()
    conversations.get_by_role("button", name=re.compile("Delete .*fresh snow")).first.click()
    conversations.get_by_role("button", name="Delete", exact=True).click()
    expect(link).to_have_count(0)


def test_what_the_user_types_is_never_markup(page: Page) -> None:
    send(page, "<img src=x onerror=alert(1)><script>alert(2)</script> **bold**")
    let_it_say_something(page)

    question = page.get_by_role("article", name="You").last

    expect(question).to_contain_text("<img src=x onerror=alert(1)>")
    assert question.locator("img, script").count() == 0
