"""What the page shows of the machine: the cache, the batch, the operator's figures."""

import re

import httpx
import pytest
from e2e.chat_page import expect_phase, say, send, stop
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.needs_program("chromium")

SYSTEM = "You keep the lighthouse of a small island and answer every question with its weather."


def test_tree_shows_what_two_conversations_share(page: Page) -> None:
    for question in ("Is there fog today?", "How strong is the wind?"):
        page.goto("/#/")
        page.reload()
        page.get_by_role("button", name="Add a system prompt").click()
        page.get_by_role("textbox", name="System prompt").fill(SYSTEM)
        say(page, question)

    page.get_by_role("link", name="Cache view").click()

    page.get_by_text("The same as a table").click()
    shared = page.get_by_role("row").filter(has_text="lighthouse")
    expect(shared.first).to_be_visible()
    tokens = [
        int(re.sub(r"\D", "", cell))
        for cell in shared.first.locator("td").all_inner_texts()
        if re.fullmatch(r"[\d,]+", cell)
    ]
    assert max(tokens) >= 16, "a page of the system prompt is shared at least"


def test_pages_of_a_running_request_are_drawn_in_their_order(page: Page) -> None:
    send(page, "Write a very long story about a lighthouse.")
    expect_phase(page, "streaming")

    page.get_by_role("link", name="Cache view").click()
    page.get_by_role("button", name=re.compile("prompt tokens cached")).first.click()

    strip = page.locator(".page-strip, [class*=strip]").first
    expect(strip).to_be_visible()
    expect(page.get_by_role("heading", name="Page map")).to_be_visible()
    page.go_back()
    stop(page)


def test_operator_sees_workers_and_tenants(page: Page, service_url: str) -> None:
    overview = httpx.get(f"{service_url}/v1/chatserve/overview").json()

    page.get_by_role("link", name="Operation").click()

    expect(page.get_by_role("row").filter(has_text="default")).to_be_visible()
    expect(page.get_by_text(overview["workers"][0]["id"])).to_be_visible()
