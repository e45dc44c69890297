"""What somebody finds who is new to the page, in a real browser."""

import re
from typing import Any

import pytest
from e2e.chat_page import UNDO_MS, open_page, retime, said, say
from playwright.sync_api import Browser, Page, Route, expect

pytestmark = pytest.mark.needs_program("chromium")


def test_inspector_stands_beside_conversations_only(page: Page) -> None:
    inspector = page.get_by_role("complementary", name="Inspector")
    opener = page.get_by_role("button", name="Inspector", exact=True)
    opener.click()
    expect(inspector).to_be_visible()

    page.get_by_role("link", name="Cache view").click()
    expect(inspector).to_have_count(0)
    expect(opener).to_have_count(0)
    page.keyboard.press("Control+.")
    page.go_back()

    expect(inspector).to_be_visible()


def test_keys_are_listed_behind_a_button_on_a_phone_too(browser: Browser, service_url: str) -> None:
    phone: dict[str, Any] = {
        "viewport": {"width": 390, "height": 780},
        "has_touch": True,
        "is_mobile": True,
    }
    with open_page(browser, service_url, **phone) as page:
        page.get_by_role("button", name="Show conversations").click()
        page.get_by_role("button", name="Keyboard shortcuts").click()

        keys = page.get_by_role("dialog", name="Keyboard shortcuts")
        expect(keys.get_by_text("Start a new line")).to_be_visible()


def test_a_message_can_be_sent_once_the_models_are_known(page: Page) -> None:
    asked: list[Route] = []
    page.route("**/v1/models", lambda route: asked.append(route))
    page.reload()
    page.get_by_role("textbox", name="Message").fill("Hello")
    expect(page.get_by_role("button", name="Attach text files")).to_be_enabled()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()

    for route in asked:
        route.continue_()
    page.unroute("**/v1/models")

    say(page, "Hello")


def test_editor_of_a_message_says_how_to_send_and_does_so(page: Page) -> None:
    say(page, "Name a bird.")
    said(page).hover()
    page.get_by_role("button", name="Edit", exact=True).first.click()
    editor = page.get_by_role("textbox", name="Edit your message")

    expect(editor).to_have_accessible_description(re.compile(r"Ctrl\+Enter"))
    editor.fill("Name a fish.")
    editor.press("Control+Enter")

    expect(said(page)).to_have_text("Name a fish.")
    page.keyboard.press("Escape")


def test_offer_to_undo_covers_nothing_of_the_list_and_not_the_composer(page: Page) -> None:
    say(page, "Name a tree.")
    retime(page, {UNDO_MS: 60_000})
    page.get_by_role("article", name="Answer").hover()
    page.get_by_role("button", name="Delete").last.click()

    offer = page.get_by_role("button", name="Undo").bounding_box()
    foot = page.get_by_role("button", name="Settings").bounding_box()
    composer = page.get_by_role("textbox", name="Message").bounding_box()
    assert offer is not None
    assert foot is not None
    assert composer is not None
    assert offer["x"] > foot["x"] + foot["width"]
    assert offer["y"] + offer["height"] <= composer["y"]


def test_page_itself_never_scrolls(page: Page) -> None:
    say(page, "Name a flower.")
    page.set_viewport_size({"width": 1000, "height": 320})

    page.get_by_role("group", name="Figures").get_by_role("button").last.click()

    expect(page.get_by_text("Time to first token")).to_be_in_viewport()
    page.evaluate("scrollTo(0, 500)")
    assert page.evaluate("[scrollY, document.querySelector('.page').scrollTop]") == [0, 0]
    expect(page.get_by_role("heading", level=1)).to_be_in_viewport()
