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


def scale_of_tree(page: Page) -> str:
    transform = page.locator(".tree > g").get_attribute("transform") or ""
    return transform.rpartition("scale(")[2].rstrip(")")


def test_wheel_scrolls_the_page_and_with_ctrl_zooms_the_tree(page: Page) -> None:
    begin_chat(page, short())
    send(page, "Is there fog today?")
    expect_phase(page, "cut")
    page.get_by_role("link", name="Cache view").click()
    tree = page.get_by_role("group", name=re.compile("Picture of the prefixes"))
    node = tree.get_by_role("treeitem").first
    expect(node).to_be_in_viewport()
    fitted = scale_of_tree(page)

    tree.hover()
    with page.expect_event("console", lambda message: message.text == "scrolled"):
        page.evaluate(
            "document.querySelector('.observe')"
            ".addEventListener('scroll', () => console.log('scrolled'), {once: true})"
        )
        page.mouse.wheel(0, 300)
    assert scale_of_tree(page) == fitted

    tree.scroll_into_view_if_needed()
    tree.hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    expect(page.locator(f'.tree > g:not([transform$="scale({fitted})"])')).to_be_attached()
    assert float(scale_of_tree(page)) > float(fitted)
    for _ in range(9):
        page.mouse.wheel(0, 900)
    page.keyboard.up("Control")
    expect(page.locator(f'.tree > g[transform$="scale({fitted})"]')).to_be_attached()
    expect(node).to_be_in_viewport()


def test_operators_page_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(page.url.partition("#")[0] + "#/operator")

    expect(page.get_by_role("row").filter(has_text="default")).to_contain_text("not limited")
    sizes = page.locator(".observe, .observe-table").evaluate_all(
        "all => all.map(each => each.scrollWidth - each.clientWidth)"
    )
    assert sizes == [0, 0]


def test_operator_sees_workers_and_tenants(page: Page, service_url: str) -> None:
    overview = httpx.get(f"{service_url}/v1/chatserve/overview").json()

    page.get_by_role("link", name="Operation").click()

    expect(page.get_by_role("row").filter(has_text="default")).to_be_visible()
    expect(page.get_by_text(overview["workers"][0]["id"])).to_be_visible()
