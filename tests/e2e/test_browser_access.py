"""Whether everybody can use the page: by keyboard, by ear, in any colours and at any size."""

import re
from collections.abc import Iterator

import pytest
from e2e.archive import conversation, import_conversations, message
from e2e.chat_page import (
    ANSWER_MS,
    LONG,
    PHONE,
    composer,
    expect_phase,
    last_answer,
    let_it_begin,
    new_answer,
    open_page,
    said,
    say,
    say_by_button,
    send,
    show_list,
    stop,
)
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

# Touch targets that are too small; what stands in a line of text may be (WCAG 2.2, 2.5.8).
SMALL_TARGETS = """() => [...document.querySelectorAll("button, select, textarea, summary, nav a")]
    .filter((element) => element.checkVisibility())
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([, { width, height }]) => width < 40 || height < 40)
    .map(([element]) => element.outerHTML.slice(0, 120))"""


@pytest.fixture
def phone(browser: Browser, service_url: str) -> Iterator[Page]:
    with open_page(browser, service_url, answers=LONG, **PHONE) as page:
        yield page


def test_tab_reaches_everything_in_the_order_of_reading(page: Page) -> None:
    say(page, "Hello")
    names = focused_names(page)

    wanted = ["New chat", "Search", "Export all", "Import", "Settings", "Inspector", "Transcript"]
    wanted += ["Edit", "Copy message", "Delete", "Regenerate", "Copy answer", "Message"]
    places = [names.index(name) for name in wanted]
    assert places == sorted(places)
    assert any(name.startswith("More for") for name in names)


def focused_names(page: Page) -> list[str]:
    """Return what Tab passes from the beginning of the page to its end."""
    rounds: list[list[str]] = [[]]
    while len(rounds) < 3 and sum(map(len, rounds)) < 200:
        page.keyboard.press("Tab")
        name = page.evaluate(
            """() => {
                const element = document.activeElement;
                return element === document.body ? null :
                    element.getAttribute("aria-label") ?? element.textContent.trim();
            }"""
        )
        if name is None:
            rounds.append([])
        else:
            rounds[-1].append(name)
    return rounds[1]


def test_a_screen_reader_hears_beginning_and_end_and_no_tokens(page: Page) -> None:
    page.evaluate(
        """() => {
            window.heard = [];
            const region = document.querySelector("main > [role=status]");
            const changes = new MutationObserver(() => window.heard.push(region.textContent));
            changes.observe(region, { characterData: true, childList: true, subtree: true });
        }"""
    )
    send(page, "Write a very long story about a river.")
    let_it_begin(page)
    still = page.get_by_role("status").filter(has_text="Still writing")
    expect(still).to_have_count(1, timeout=ANSWER_MS)
    stop(page)

    expect(page.get_by_role("status").filter(has_text="Answer stopped")).to_have_count(1)
    assert page.get_by_role("log").get_attribute("aria-live") == "off"
    heard = [words for words in page.evaluate("window.heard") if words != ""]
    assert heard[0] == "Answer started"
    assert heard[-1] == "Answer stopped"
    assert all(words.startswith("Still writing, ") for words in heard[1:-1])


def test_the_focus_stays_where_the_reader_goes_on(page: Page) -> None:
    with new_answer(page):
        page.get_by_role("button", name=re.compile("rainy afternoon")).click()
    let_it_begin(page)
    expect(composer(page)).to_be_focused()
    stop(page)

    say_by_button(page, "And another one?")
    expect(composer(page)).to_be_focused()

    edit = last_answer(page).get_by_role("button", name="Edit", exact=True)
    edit.click()
    page.keyboard.press("Escape")
    expect(edit).to_be_focused()
    last_answer(page).get_by_role("button", name="Delete", exact=True).click()
    expect(composer(page)).to_be_focused()


def test_the_focus_goes_on_in_the_composer_when_the_button_that_stops_is_gone(page: Page) -> None:
    send(page, "What makes the sea salty?")
    let_it_begin(page)
    page.get_by_role("button", name="Stop").press("Enter")

    expect_phase(page, "stopped")
    expect(composer(page)).to_be_focused()


def test_the_focus_stays_with_a_conversation_that_is_renamed_or_pinned(
    page: Page, service_url: str
) -> None:
    (session_id,) = import_conversations(
        service_url, [conversation("Salt", [message("user", "What makes the sea salty?")])]
    )
    page.reload()
    link = page.locator(f'nav a[href="#/c/{session_id}"]')
    for choice, keys in (("Rename", ["Escape"]), ("Rename", ["Enter"]), ("Pin", []), ("Unpin", [])):
        page.get_by_role("button", name="More for Salt").press("Enter")
        page.get_by_role("button", name=choice, exact=True).press("Enter")
        for key in keys:
            expect(page.get_by_role("textbox", name="Rename")).to_be_focused()
            page.keyboard.press(key)
        expect(link).to_be_focused()


def test_a_double_click_sends_and_does_not_stop(page: Page) -> None:
    composer(page).fill("Name a fish of the deep sea.")
    with new_answer(page):
        page.get_by_role("button", name="Send").dblclick()

    let_it_begin(page)
    expect_phase(page, "streaming")


def test_on_a_phone_the_panels_are_sheets(phone: Page) -> None:
    say_by_button(phone, "Hello")
    navigation = phone.get_by_role("navigation", name="Conversations")
    expect(navigation).to_have_count(0)

    show_list(phone)
    phone.keyboard.press("Escape")
    expect(navigation).to_have_count(0)
    show_list(phone)
    phone.touchscreen.tap(350, 400)
    expect(navigation).to_have_count(0)
    show_list(phone)
    swipe(phone, 250, 40)
    expect(navigation).to_have_count(0)
    show_list(phone)
    phone.get_by_role("button", name="New chat").click()
    expect(navigation).to_have_count(0)
    expect(said(phone)).to_have_count(0)

    phone.get_by_role("button", name="Inspector").click()
    expect(phone.get_by_role("dialog", name="Inspector")).to_be_visible()
    phone.keyboard.press("Escape")
    expect(phone.get_by_role("dialog")).to_have_count(0)


def swipe(page: Page, from_x: int, to_x: int) -> None:
    devtools = page.context.new_cdp_session(page)
    for kind, x in (("touchStart", from_x), ("touchMove", to_x)):
        devtools.send(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": 500}]}
        )
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_on_a_phone_everything_can_be_hit_with_a_finger_and_enter_makes_a_line(
    phone: Page,
) -> None:
    composer(phone).press_sequentially("one")
    composer(phone).press("Enter")
    expect(composer(phone)).to_have_value("one\n")
    small = phone.evaluate(SMALL_TARGETS)
    say_by_button(phone, "Hello")
    small += phone.evaluate(SMALL_TARGETS)
    show_list(phone)
    small += phone.evaluate(SMALL_TARGETS)
    phone.get_by_role("button", name="Settings").click()
    expect(phone.get_by_label("Language")).to_be_visible()
    small += phone.evaluate(SMALL_TARGETS)

    assert small == []
