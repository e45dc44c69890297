"""What the reader has written or chosen and not sent, in a real browser."""

import re
import time
from collections.abc import Iterator

import httpx
import pytest
from e2e.chat_page import (
    ENDED,
    KEPT,
    LONG,
    begin_chat,
    composer,
    delete_conversation,
    expect_phase,
    list_link,
    open_context,
    open_inspector,
    said,
    say,
    send,
    stop,
)
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    WebSocketRoute,
    expect,
)

pytestmark = pytest.mark.needs_program("chromium")

WAIT_MS = 60_000
NOTES = {"name": "notes.md", "mimeType": "text/plain", "buffer": b"# Notes\nRemember the milk.\n"}
PERSONA = "postcard"

# What the browser says of a conversation that was deleted, and of a note that came too late.
EXPECTED = "status of (404|409)"

NO_STORAGE = """
for (const name of ["localStorage", "indexedDB"]) {
    Object.defineProperty(window, name, {
        get: () => { throw new DOMException("denied", "SecurityError"); },
    });
}
"""


@pytest.fixture
def context(browser: Browser, service_url: str) -> Iterator[BrowserContext]:
    """One browser of one reader; a test opens its tabs."""
    with open_context(browser, service_url, allowed=EXPECTED) as context:
        yield context


@pytest.fixture
def persona(service_url: str) -> Iterator[str]:
    prompt = {"name": PERSONA, "text": "Write a postcard from {{place}} to {{name}}."}
    with httpx.Client(base_url=service_url, timeout=WAIT_MS / 1000) as client:
        client.post("/v1/chatserve/prompts", json=prompt).raise_for_status()
        yield PERSONA
        client.delete(f"/v1/chatserve/prompts/{PERSONA}").raise_for_status()


def open_tab(context: BrowserContext, url: str = "/") -> Page:
    page = context.new_page()
    page.goto(url)
    expect(page.locator("header .connection")).to_have_text("live", timeout=WAIT_MS)
    return page


def open_chat(context: BrowserContext) -> Page:
    page = context.new_page()
    begin_chat(page, LONG)
    return page


def await_kept(page: Page, *texts: str) -> None:
    """Wait until the browser keeps these texts, so that they outlive the page."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while not all(text in page.evaluate(KEPT) for text in texts):
        assert time.monotonic() < deadline, texts
        page.wait_for_timeout(50)


def attached(page: Page) -> Locator:
    return page.get_by_role("list", name="Attached")


def attach(page: Page) -> None:
    page.locator(".composer input[type=file]").set_input_files(NOTES)  # type: ignore[arg-type]
    expect(attached(page)).to_contain_text("notes.md")


def editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Edit your message")


def test_what_is_attached_is_there_after_a_reload_and_gone_with_the_message(page: Page) -> None:
    composer(page).fill("What is in my notes?")
    attach(page)
    await_kept(page, "What is in my notes?", "Remember the milk")

    page.reload()
    expect(attached(page)).to_contain_text("2 lines, 27 B")
    expect(composer(page)).to_have_value("What is in my notes?")
    composer(page).press("Enter")
    expect(said(page).locator("details")).to_contain_text("notes.md")
    expect_phase(page, "streaming|completed")
    stop(page)

    page.reload()
    expect(said(page)).to_contain_text("What is in my notes?")
    expect(composer(page)).to_have_value("")
    expect(attached(page)).to_have_count(0)


def test_a_browser_that_keeps_nothing_says_so_and_still_sends(context: BrowserContext) -> None:
    context.add_init_script(NO_STORAGE)
    page = open_tab(context)
    attach(page)

    expect(page.get_by_role("alert").filter(has_text="This browser")).to_be_visible()
    composer(page).press("Enter")
    expect(said(page).locator("details")).to_contain_text("notes.md")


def test_each_tab_has_its_own_new_chat_and_a_closed_one_leaves_it_once(
    context: BrowserContext,
) -> None:
    first = open_tab(context)
    composer(first).fill("From the first tab")
    attach(first)
    await_kept(first, "From the first tab", "Remember the milk")
    second = open_tab(context)
    expect(second.get_by_role("heading", name="New chat")).to_be_visible()
    second.wait_for_timeout(700)
    expect(composer(second)).to_have_value("")
    composer(second).fill("From the second tab")
    second.reload()
    first.reload()
    expect(composer(second)).to_have_value("From the second tab")
    expect(composer(first)).to_have_value("From the first tab")

    first.close()
    third = open_tab(context)
    expect(composer(third)).to_have_value("From the first tab")
    expect(attached(third)).to_contain_text("notes.md")
    fourth = open_tab(context)
    fourth.wait_for_timeout(700)
    expect(composer(fourth)).to_have_value("")


def test_a_duplicated_tab_has_a_new_chat_of_its_own(context: BrowserContext) -> None:
    first = open_tab(context)
    composer(first).fill("Written before")
    await_kept(first, "Written before")
    with context.expect_page() as opened:
        # A tab that a page opens begins with a copy of its session storage, as a duplicate does.
        first.evaluate("() => void window.open(location.href)")
    second = opened.value
    expect(second.locator("header .connection")).to_have_text("live")
    second.wait_for_timeout(1_200)
    expect(composer(second)).to_have_value("")
    composer(second).fill("Written in the copy")
    second.reload()
    first.reload()

    expect(composer(first)).to_have_value("Written before")
    expect(composer(second)).to_have_value("Written in the copy")


def test_a_new_chat_is_kept_and_the_next_one_begins_from_the_defaults(
    context: BrowserContext,
) -> None:
    page = context.new_page()
    page.goto("/")
    mark = page.locator("header .num-changed")
    panel = open_inspector(page)
    panel.get_by_role("textbox", name="Temperature").fill("0.2")
    panel.get_by_role("textbox", name="Longest answer").fill("20")
    beginning = page.get_by_role("region", name="New chat")
    beginning.get_by_role("button", name="Add a system prompt").click()
    beginning.get_by_role("textbox", name="System prompt").fill("Be brief.")
    page.keyboard.press("Control+.")
    await_kept(page, "Be brief.")

    page.reload()
    line = page.locator(".changed-parameters")
    expect(line).to_contain_text("Temperature 0.2, 1 more changed")
    expect(mark).to_have_attribute("data-count", "2")
    expect(page.get_by_role("textbox", name="System prompt")).to_have_value("Be brief.")
    send(page, "Hello")
    expect_phase(page, ENDED)
    expect(mark).to_have_attribute("data-count", "2")

    page.get_by_role("button", name="New chat").click()
    expect(said(page)).to_have_count(0)
    expect(line).to_have_count(0)
    expect(mark).to_have_count(0)
    expect(page.get_by_role("button", name="Add a system prompt")).to_be_visible()


def test_a_begun_change_of_a_message_waits_for_the_reader(page: Page) -> None:
    say(page, "Name a river.")
    address = page.url
    page.keyboard.press("ArrowUp")
    editor(page).fill("Name a mountain.")
    page.keyboard.press("Escape")
    expect(page.get_by_text("You have begun to change this")).to_be_visible()
    page.get_by_role("button", name="Keep editing").click()
    expect(editor(page)).to_have_value("Name a mountain.")

    page.get_by_role("button", name="New chat").click()
    expect(composer(page)).to_have_value("")
    page.goto(address)
    expect(page.get_by_text("You have begun to change this")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Keep editing").click()
    expect(editor(page)).to_have_value("Name a mountain.")
    editor(page).press("Control+Enter")
    expect(said(page)).to_have_text("Name a mountain.")
    expect_phase(page, "streaming|completed")
    stop(page)

    page.keyboard.press("Alt+ArrowLeft")
    expect(said(page)).to_have_text("Name a river.")
    expect(page.get_by_text("You have begun to change this")).to_have_count(0)


def test_a_deleted_conversation_says_so_and_comes_back_with_its_draft(page: Page) -> None:
    say(page, "Name the smell of fresh bread.")
    composer(page).fill("And of coffee")
    delete_conversation(page, "fresh bread")
    expect(composer(page)).to_have_value("")

    page.go_back()
    deleted = page.locator(".notice").filter(has_text="This conversation was deleted")
    expect(deleted).to_be_visible()
    expect(composer(page)).to_have_count(0)
    deleted.get_by_role("button", name="Undo").click()
    expect(said(page)).to_contain_text("fresh bread")
    expect(composer(page)).to_have_value("And of coffee")
    expect(list_link(page, "fresh bread")).to_be_visible()


@pytest.mark.parametrize("way", ["reload", "another page"])
def test_a_deletion_is_final_when_the_page_is_left(context: BrowserContext, way: str) -> None:
    page = open_chat(context)
    say(page, "Name the smell of wet stone.")
    address = page.url
    delete_conversation(page, "wet stone")

    if way == "reload":
        page.reload()
    else:
        page.goto("about:blank")

    page.goto(address)
    expect(page.get_by_text("not among yours")).to_be_visible()


def test_a_message_that_does_not_get_through_is_there_after_a_reload(
    context: BrowserContext,
) -> None:
    page = open_chat(context)
    say(page, "Hello")
    swallowed: list[str | bytes] = []

    def swallow(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def pass_on(frame: str | bytes) -> None:
            if "response.create" in str(frame):
                swallowed.append(frame)
            else:
                server.send(frame)

        route.on_message(pass_on)

    page.route_web_socket(re.compile("/v1/responses"), swallow)
    page.reload()
    expect(page.locator("header .connection")).to_have_text("live")
    composer(page).fill("Is anybody there?")
    attach(page)
    composer(page).press("Enter")
    expect(composer(page)).to_have_value("")
    expect(said(page).last).to_contain_text("Is anybody there?")
    assert swallowed

    page.reload()
    expect(said(page)).to_have_count(1)
    expect(composer(page)).to_have_value("Is anybody there?")
    expect(attached(page)).to_contain_text("notes.md")


def test_a_persona_asks_for_what_it_needs_where_that_is_given(page: Page, persona: str) -> None:
    page.reload()
    page.get_by_role("radio", name=persona).click()
    place = page.get_by_role("textbox", name="place")
    expect(place).to_be_focused()
    place.fill("Rome")
    expect(page.get_by_text("needs a value for “name”")).to_be_visible()
    page.get_by_role("button", name="Give a value").click()
    expect(page.get_by_role("textbox", name="name")).to_be_focused()
    page.get_by_role("textbox", name="name").fill("Ada")
    say(page, "Write.")

    page.get_by_role("combobox", name="Persona").select_option("")
    page.get_by_role("combobox", name="Persona").select_option(persona)
    panel = page.get_by_role("complementary", name="Inspector")
    expect(panel.get_by_role("textbox", name="place")).to_be_focused()
