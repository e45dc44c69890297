"""What somebody finds who is new to the page, in a real browser."""

import re
from typing import Any

import pytest
from e2e.chat_page import (
    UNDO_MS,
    composer,
    expect_connection,
    last_answer,
    let_it_begin,
    new_answer,
    open_context,
    open_page,
    retime,
    said,
    say,
    stop,
)
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


def test_what_is_sent_before_the_models_are_known_goes_out_once_they_are(page: Page) -> None:
    asked: list[Route] = []
    page.route("**/v1/models", lambda route: asked.append(route))
    page.reload()
    composer(page).fill("Hello")
    expect(page.get_by_role("button", name="Attach text files")).to_be_enabled()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    composer(page).press("Enter")

    with new_answer(page):
        for route in asked:
            route.continue_()
        page.unroute("**/v1/models")
    let_it_begin(page)
    stop(page)

    expect(said(page)).to_have_count(1)
    expect(composer(page)).to_have_value("")


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


def test_escape_closes_the_inspector_only_from_inside(page: Page) -> None:
    inspector = page.get_by_role("complementary", name="Inspector")
    opener = page.get_by_role("button", name="Inspector", exact=True)
    opener.click()
    composer(page).press("Escape")
    expect(inspector).to_be_visible()

    inspector.get_by_role("slider", name="Temperature").press("Escape")

    expect(inspector).to_have_count(0)
    expect(opener).to_be_focused()


def test_a_model_that_still_loads_is_told_of_and_enter_says_why(
    browser: Browser, service_url: str
) -> None:
    with open_context(browser, service_url) as context:
        page = context.new_page()
        page.route("**/v1/models", lambda route: route.fulfill(json={"data": []}))
        page.goto("/")
        expect_connection(page, "model is loading")
        expect(page.get_by_role("alert").filter(has_text="still loading")).to_have_count(0)

        composer(page).fill("Hello?")
        composer(page).press("Enter")

        expect(page.get_by_role("alert").filter(has_text="still loading")).to_be_visible()
        expect(composer(page)).to_have_value("Hello?")
        page.unroute("**/v1/models")
        expect_connection(page, "^live")
        expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_composer_is_as_wide_as_what_is_read_beside_the_inspector(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    say(page, "Name a river.")
    page.get_by_role("button", name="Inspector", exact=True).click()

    answer = last_answer(page).bounding_box()
    form = page.locator(".composer").bounding_box()

    assert answer is not None
    assert form is not None
    assert (form["x"], form["width"]) == (answer["x"], answer["width"])


def test_offer_to_undo_names_another_chat_and_covers_no_field_there(page: Page) -> None:
    say(page, "Name a cloud.")
    say(page, "Name a wind.")
    page.get_by_role("article", name="Answer").last.hover()
    page.get_by_role("button", name="Delete").last.click()
    offer = page.locator(".undo-bar p")
    expect(offer).to_contain_text(re.compile("^1 message"))

    page.get_by_role("button", name="New chat").click()

    expect(offer).to_contain_text(re.compile("^Name a cloud.*: 1 message deleted"))
    bar = offer.bounding_box()
    frame = page.locator(".transcript").bounding_box()
    assert bar is not None
    assert frame is not None
    assert bar["y"] >= frame["y"] + frame["height"]
