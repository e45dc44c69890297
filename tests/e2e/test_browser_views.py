"""What the page shows of the machine: the cache, the batch, the operator's figures."""

import re

import httpx
import pytest
from e2e.chat_page import begin_chat, expect_phase, let_it_begin, send, short, stop
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.needs_program("chromium")

SYSTEM = (
    "You keep the lighthouse of a small island and answer every question with its weather. "
    "Nobody has come ashore since spring, and the lamp is lit an hour before the sun sets."
)


def test_tree_shows_what_two_conversations_share(page: Page) -> None:
    for question in ("Is there fog today?", "How strong is the wind?"):
        begin_chat(page, short())
        page.get_by_role("button", name="Add a system prompt").click()
        page.get_by_role("textbox", name="System prompt").fill(SYSTEM)
        send(page, question)
        expect_phase(page, "cut")

    page.get_by_role("link", name="Cache view").click()

    page.get_by_text("The same as a table").click()
    # The tree may have more rows than are shown.
    page.get_by_role("button", name="Last use").click()
    table = page.get_by_role("table").filter(has_text="First words")
    shared = table.get_by_role("row").filter(has_text="keep the lighthouse")
    expect(shared).to_have_count(1)
    _scope, num_tokens, num_hits, *_ = shared.get_by_role("cell").all_inner_texts()
    assert int(num_tokens) >= 32, "two pages of the system prompt are shared at least"
    assert int(num_hits) >= 1


def test_pages_of_a_running_request_are_drawn_in_their_order(page: Page, service_url: str) -> None:
    send(page, "Write a very long story about a lighthouse.")
    let_it_begin(page)

    page.get_by_role("link", name="Cache view").click()
    page.get_by_role("button", name=re.compile("prompt tokens cached")).click()

    strip = page.get_by_role("img", name=re.compile("physical pages of the chosen request"))
    expect(strip.locator(".logical-page").nth(1)).to_be_attached()
    (worker,) = httpx.get(f"{service_url}/v1/chatserve/cache").json()["workers"]
    first, second, *_ = worker["requests"][0]["pages"]
    expect(strip).to_have_attribute("aria-label", re.compile(f": {first}, {second}(,|$)"))
    expect(page.get_by_role("heading", name="Page map")).to_be_visible()
    page.go_back()
    stop(page)


def test_operator_sees_workers_and_tenants(page: Page, service_url: str) -> None:
    overview = httpx.get(f"{service_url}/v1/chatserve/overview").json()

    page.get_by_role("link", name="Operation").click()

    expect(page.get_by_role("row").filter(has_text="default")).to_be_visible()
    expect(page.get_by_text(overview["workers"][0]["id"])).to_be_visible()
