"""Parameters and personas of the page, in a real browser on the real service and model."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from e2e.chat_page import (
    ANSWER_MS,
    begin_chat,
    expect_phase,
    open_context,
    open_inspector,
    send,
    short,
)
from playwright.sync_api import Browser, Locator, Page, WebSocket, expect

pytestmark = pytest.mark.needs_program("chromium")

# A page that is left and the one after it both note the last choices: one of them comes too late.
LATE_NOTE = "status of 409"

PERSONA = "letter"
PERSONA_TEXT = (
    "You write short, friendly letters for a small library by the sea. Every letter has a "
    "greeting, one sentence about books, one sentence about the weather, and a farewell. Never "
    "write more than four sentences, and never promise that a book is there. The letter is for "
    "{{name}}."
)


@pytest.fixture
def page(browser: Browser, service_url: str) -> Iterator[Page]:
    """A page before anything is loaded, so that a test hears all that it says."""
    with open_context(browser, service_url, allowed=LATE_NOTE) as context:
        yield context.new_page()


@pytest.fixture
def creates(page: Page) -> list[dict[str, Any]]:
    """What the page has asked for on the socket, each without where it goes."""
    asked: list[dict[str, Any]] = []

    def note(frame: str | bytes) -> None:
        message = json.loads(frame)
        if message["type"] == "response.create":
            asked.append(message)

    def follow(socket: WebSocket) -> None:
        socket.on("framesent", note)

    page.on("websocket", follow)
    return asked


@pytest.fixture
def persona(service_url: str) -> Iterator[str]:
    """A persona with a variable, computed before it is used."""
    with httpx.Client(base_url=service_url, timeout=ANSWER_MS / 1000) as client:
        client.post(
            "/v1/chatserve/prompts", json={"name": PERSONA, "text": PERSONA_TEXT}
        ).raise_for_status()
        wait_until(lambda: is_pinned(client))
        yield PERSONA
        client.delete(f"/v1/chatserve/prompts/{PERSONA}").raise_for_status()


def is_pinned(client: httpx.Client) -> bool:
    workers = client.get(f"/v1/chatserve/prompts/{PERSONA}").json()["workers"]
    return bool(workers) and all(worker["state"] == "pinned" for worker in workers)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ANSWER_MS / 1000
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def answer_to(page: Page, text: str) -> Locator:
    """Say something, and return its answer once it has ended."""
    send(page, text)
    expect_phase(page, "completed|cut")
    answers = page.get_by_role("article", name="Answer")
    return answers.nth(answers.count() - 1)


def num_cached(answer: Locator) -> int:
    words = answer.locator(".cached-tokens").inner_text()
    return int(words.split(" of ")[0].replace(",", ""))


def inspector(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Inspector")


def sampling_of(create: dict[str, Any]) -> dict[str, Any]:
    envelope = ("type", "stream_id", "event_id", "model", "conversation", "input")
    return {name: value for name, value in create.items() if name not in envelope}


def test_exactly_what_was_changed_is_asked_for_and_a_reload_keeps_it(
    page: Page, creates: list[dict[str, Any]]
) -> None:
    page.goto("/")
    panel = open_inspector(page)
    panel.get_by_role("textbox", name="Temperature").fill("0")
    panel.get_by_role("textbox", name="Longest answer").fill("5")
    panel.get_by_role("textbox", name="Shortest answer").fill("5")
    answer = answer_to(page, "Count from one to twenty.")
    expect(answer).to_have_attribute("data-phase", "cut")

    assert sampling_of(creates[0]) == {"temperature": 0, **short(5)}

    # A change in a conversation that exists, and the page left at once.
    panel.get_by_role("textbox", name="Share of likelihood").fill("0.5")
    page.reload()
    open_inspector(page)
    expect(panel.get_by_role("textbox", name="Temperature")).to_have_value("0")
    expect(panel.get_by_role("textbox", name="Share of likelihood")).to_have_value("0.5")
    panel.get_by_role("button", name="Reset Temperature").click()
    answer_to(page, "And on.")

    asked = sampling_of(creates[1])
    del asked["chatserve:parent_id"]
    assert asked == {"top_p": 0.5, **short(5)}


def test_a_value_out_of_bounds_is_told_and_not_sent(
    page: Page, creates: list[dict[str, Any]]
) -> None:
    page.goto("/")
    panel = open_inspector(page)
    panel.get_by_role("textbox", name="Longest answer").fill("4")
    field = panel.get_by_role("textbox", name="Temperature")
    field.fill("5")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("at most 2"))

    answer_to(page, "Hello.")

    assert sampling_of(creates[0]) == {"max_output_tokens": 4}


def test_a_persona_is_picked_and_its_tokens_are_found_in_the_cache(
    page: Page, persona: str, creates: list[dict[str, Any]]
) -> None:
    page.goto("/")
    page.get_by_role("radio", name=persona).check()
    expect(page.get_by_text(f"The persona {persona} needs a value")).to_be_visible()
    expect(page.get_by_role("combobox", name="Persona")).to_have_count(0)
    page.get_by_role("textbox", name="name").fill("Ada")
    page.keyboard.press("Control+.")
    inspector(page).get_by_role("textbox", name="Longest answer").fill("8")
    first = answer_to(page, "Write to a reader.")

    prompt = {"id": persona, "variables": {"name": "Ada"}}
    assert sampling_of(creates[0]) == {"max_output_tokens": 8, "prompt": prompt}
    num_pinned = num_cached(first)
    assert num_pinned > 50

    second = answer_to(page, "And to another one.")

    assert creates[1]["prompt"] == prompt
    assert num_cached(second) > num_pinned


def test_the_figures_open_the_inspector_on_their_answer(page: Page) -> None:
    begin_chat(page, short(6))
    panel = inspector(page)
    first = answer_to(page, "Name a river.")
    answer_to(page, "Name a sea.")
    expect(panel).to_have_count(0)

    first.get_by_role("group", name="Figures").get_by_role("button").press("Enter")

    expect(panel.get_by_text("Answer 1 of 2")).to_be_visible()
    expect(panel.get_by_text("at the limit of tokens")).to_be_visible()
    panel.get_by_text("Raw response").click()
    expect(panel.locator("pre")).to_contain_text('"chatserve:timings"')
    panel.get_by_role("button", name="Close").press("Enter")
    expect(first.get_by_role("group", name="Figures").get_by_role("button")).to_be_focused()
